"""`causal_experiment_*`: chance decides who gets a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme import to_dict
from mneme.visible import visible_line

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.causal import NAME

_SUBJECT = "Whom or what it is about: a task, a session, a user."


@offers(
    "create_experiment",
    name="The experiment's name.",
    cause=NAME,
    effect=NAME,
    description="What you expect, and why.",
    experiment_id="Your own id for it; one is made if empty.",
)
class CreateArguments(SnakeArguments):
    """What to compare."""


class CreateOutput(SnakeOutput):
    """The experiment."""

    experiment_id: str


async def create(call: Call, given: CreateArguments) -> Reply:
    """Answer `causal_experiment_create`."""
    answer = to_dict(await call.client.create_experiment(**given.request()))
    made = CreateOutput(experiment_id=answer["experiment"]["id"])
    return Reply(f"Created the experiment {made.experiment_id}.", made)


@offers(
    "assign_treatment",
    experiment_id=...,
    subject=_SUBJECT,
    stratum="A group to balance within, e.g. one project or one agent.",
)
class AssignArguments(SnakeArguments):
    """Whom to assign."""


class AssignOutput(SnakeOutput):
    """The subject's arm."""

    treatment: bool
    already_assigned: bool = False


async def assign(call: Call, given: AssignArguments) -> Reply:
    """Answer `causal_experiment_assign`."""
    answer = to_dict(await call.client.assign_treatment(**given.request()))
    arm = AssignOutput.model_validate(answer)
    said = "gets the cause" if arm.treatment else "goes without the cause"
    return Reply(f"{given.subject} {said}.", arm)


@offers(
    "record_observation",
    experiment_id=...,
    subject=Offer(_SUBJECT, required=True),
    outcome=Offer("1 for success, 0 for failure, or any number.", required=True),
)
class ObserveArguments(SnakeArguments):
    """What came of a subject."""


class ObserveOutput(SnakeOutput):
    """The observation."""

    observation_id: str
    treatment: bool
    observations: int


async def observe(call: Call, given: ObserveArguments) -> Reply:
    """Answer `causal_experiment_observe`."""
    answer = to_dict(await call.client.record_observation(**given.request()))
    made = ObserveOutput.model_validate({**answer, "observations": answer["observation_count"]})
    return Reply(f"Recorded; {counted(made.observations, 'observation')} now.", made)


@offers("analyze_experiment", experiment_id=...)
class AnalyzeArguments(SnakeArguments):
    """Which experiment."""


class AnalyzeOutput(SnakeOutput):
    """What the observations say."""

    treatment_count: int
    control_count: int
    treatment_mean: float | None = None
    control_mean: float | None = None
    uplift: float | None = None
    p_value: float | None = None
    confidence_lower: float | None = None
    confidence_upper: float | None = None
    sequential_lower: float | None = None
    sequential_upper: float | None = None
    notes: list[str] = []


async def analyze(call: Call, given: AnalyzeArguments) -> Reply:
    """Answer `causal_experiment_analyze`."""
    answer = to_dict(await call.client.analyze_experiment(given.experiment_id))
    result: Mapping[str, Any] = answer["result"]
    treatment, control = result["treatment"], result["control"]
    found = AnalyzeOutput(
        treatment_count=treatment["count"],
        control_count=control["count"],
        treatment_mean=treatment.get("mean"),
        control_mean=control.get("mean"),
        uplift=result.get("uplift"),
        p_value=result.get("p_value"),
        confidence_lower=result.get("low"),
        confidence_upper=result.get("high"),
        sequential_lower=result.get("sequential_low"),
        sequential_upper=result.get("sequential_high"),
        notes=result["notes"],
    )
    lines = [f"{found.treatment_count} treated, {found.control_count} not."]
    if found.uplift is not None:
        lines.append(f"Uplift {found.uplift:+.3g}.")
    if found.p_value is not None:
        lines.append(
            f"One look: 95 % {found.confidence_lower:+.3g} to {found.confidence_upper:+.3g}, p ="
            f" {found.p_value:.3g}."
        )
    if found.sequential_lower is not None:
        lines.append(
            f"Any look: 95 % {found.sequential_lower:+.3g} to {found.sequential_upper:+.3g}."
        )
    return Reply("\n".join(map(visible_line, [*lines, *found.notes])), found)


_IF_MISSING = "causal_experiment_create begins one and returns its id."

TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="causal_experiment_create",
        title="Begin an experiment",
        description=(
            "Begins an experiment: chance decides which subjects get a cause.\n"
            "Use it to find out whether something helps, and does not just go with success.\n"
            "Returns its id.\n"
            'Example: {"name": "Review first", "cause": "code_review", "effect": "tests_pass"}.'
        ),
        arguments=CreateArguments,
        output=CreateOutput,
        handler=create,
    ),
    ToolSpec(
        name="causal_experiment_assign",
        title="Let chance decide",
        description=(
            "Decides whether a subject gets the cause. Asked again, it says the same.\n"
            "Use it before each attempt in an experiment, and do as it says.\n"
            "Returns treatment: true if the subject gets the cause.\n"
            'Example: {"experiment_id": "01K…", "subject": "pull-request-7"}.'
        ),
        arguments=AssignArguments,
        output=AssignOutput,
        handler=assign,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="causal_experiment_observe",
        title="Record what came of it",
        description=(
            "Records the outcome for a subject that was assigned.\n"
            "Use it once for each subject, whatever the outcome.\n"
            "Returns how many observations there are.\n"
            'Example: {"experiment_id": "01K…", "subject": "pull-request-7", "outcome": 1}.'
        ),
        arguments=ObserveArguments,
        output=ObserveOutput,
        handler=observe,
        if_missing=_IF_MISSING,
    ),
    ToolSpec(
        name="causal_experiment_analyze",
        title="Ask what an experiment says",
        description=(
            "Says what an experiment has shown so far.\n"
            "Use it at the end; if you look more often, go by the sequential interval.\n"
            "Returns means, uplift, intervals, and what to know before believing them.\n"
            'Example: {"experiment_id": "01K…"}.'
        ),
        arguments=AnalyzeArguments,
        output=AnalyzeOutput,
        handler=analyze,
        read_only=True,
        if_missing=_IF_MISSING,
    ),
)
