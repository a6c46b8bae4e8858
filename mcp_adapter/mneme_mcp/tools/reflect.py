"""`agentlens_reflect`: what the record says about how the agent works."""

from __future__ import annotations

from typing import Annotated, Any

from mneme import to_dict
from mneme.parameters import METHODS
from pydantic import Field

from mneme_mcp.arguments import CamelArguments
from mneme_mcp.offers import TOKENS, Offer, offers
from mneme_mcp.outputs import CamelOutput, Free, Name
from mneme_mcp.spelling import to_camel, to_snake
from mneme_mcp.text import counted, day, whole
from mneme_mcp.tool import Call, Reply, ToolSpec

_TIMEOUT_S = 300.0


@offers(
    "reflect",
    analysis=Offer(
        "error_patterns: which errors recur, what precedes and what resolved them. "
        "tool_sequences: which sequences of tools are common, and which precede failure. "
        "cost_analysis: what was spent on what. performance_trends: success, latency, errors "
        "over time. session_comparison: recent sessions against earlier ones; success by task, "
        "tag, project, agent, user.",
        required=True,
    ),
    agent_id='Only of this agent, e.g. "coder-1".',
    user_id="Only for this user.",
    project="Only on this project.",
    tags="Only with all of these labels.",
    from_=...,
    to=...,
    params=(
        dict[str, Any],
        Field(
            {},
            description='More for one analysis, e.g. {"model": "claude-opus-4-6"} for '
            'cost_analysis, {"tool": "edit_file"} or {"minCount": 2} for error_patterns, '
            '{"minSupport": 5} for tool_sequences, {"bucket": "week"} for trends, '
            '{"recentDays": 7} for session_comparison.',
        ),
    ),
    limit="Maximum findings of each kind.",
    details=(
        bool,
        Field(False, description="Also return the analysis's full tables in structured form."),
    ),
    token_budget=TOKENS,
)
class ReflectArguments(CamelArguments):
    """What to analyse."""

    holders = dict.fromkeys(METHODS["reflect"]["analysis"].choices, "params")


class Insight(CamelOutput):
    """One finding."""

    type: str
    summary: str
    data: Free = {}
    confidence: float
    q_value: float | None = None
    session_ids: list[str] = []
    event_ids: list[str] = []


class TimeRange(CamelOutput):
    """From the first to the last event looked at."""

    from_: Annotated[str, Field(alias="from")] = ""
    to: str = ""


class Looked(CamelOutput):
    """What was looked at."""

    sessions_analyzed: int
    events_analyzed: int
    time_range: TimeRange
    truncated: bool = False
    notes: list[str] = []


class ReflectOutput(CamelOutput):
    """The findings, the strongest first."""

    analysis: Name
    insights: list[Insight]
    metadata: Looked
    caveat: str = ""
    result: Free = {}
    omitted: int = 0
    message: str = ""


async def reflect(call: Call, given: ReflectArguments) -> Reply:
    """Answer `agentlens_reflect`."""
    # The API has the parameters of each analysis under its name.
    params = {to_snake(name): value for name, value in given.params.items()}
    asked: dict[str, Any] = {given.analysis: params} if params else {}
    answer = to_dict(
        await call.waiting_for(
            call.client.reflect(**given.request(), **asked, timeout=_TIMEOUT_S),
            f"analysing {given.analysis.replace('_', ' ')}",
        )
    )
    found = _output(answer, given)
    looked = found.metadata
    await call.progress(1, 1, f"analysed {counted(looked.events_analyzed, 'event')}")
    if not looked.events_analyzed:
        found.message = (
            "Nothing to reflect on: no events were recorded in this range. Widen the filters, or "
            "record what you do (agentlens_log_event, or one of Mneme's clients)."
        )
        return Reply(found.message, found)
    return _within_budget(found, given.token_budget)


def _output(answer: dict[str, Any], given: ReflectArguments) -> ReflectOutput:
    looked = answer["metadata"]
    times = {"from_": looked.get("start_time", ""), "to": looked.get("end_time", "")}
    return ReflectOutput.model_validate(
        {
            "analysis": answer["analysis"],
            "insights": answer["insights"],
            "caveat": answer.get("caveat", ""),
            "metadata": looked | {"time_range": times},
            "result": camel_keys(answer.get(given.analysis, {})) if given.details else {},
        }
    )


def _within_budget(found: ReflectOutput, budget: int) -> Reply:
    looked = found.metadata
    span = " to ".join(
        dict.fromkeys(filter(None, [day(looked.time_range.from_), day(looked.time_range.to)]))
    )
    head = (
        f"{found.analysis.replace('_', ' ').capitalize()} over "
        f"{counted(looked.events_analyzed, 'event')} of "
        f"{counted(looked.sessions_analyzed, 'session')}, {span}:"
    )
    shown = whole(
        head if found.insights else f"{head} no findings.",
        [f"{number}. {one.summary}" for number, one in enumerate(found.insights, 1)],
        budget,
        closing=found.caveat,
        notes=[f"Note: {note}" for note in looked.notes],
        more="raise tokenBudget, or narrow the question with params or filters",
    )
    found.omitted = shown.omitted
    found.insights = found.insights[: len(shown.bodies)]
    return Reply(shown.text, found)


def camel_keys(value: Any) -> Any:
    """The same JSON with camelCase names."""
    if isinstance(value, dict):
        return {to_camel(name): camel_keys(inner) for name, inner in value.items()}
    return [camel_keys(item) for item in value] if isinstance(value, list) else value


TOOLS = (
    ToolSpec(
        name="agentlens_reflect",
        title="Reflect on past behaviour",
        description=(
            "Analyses everything recorded about your work: recurring errors, what precedes "
            "and what resolved them, tools that go with failure, cost, trends, recent sessions "
            "against earlier ones, success by task, tag, project, agent and user. Comparisons "
            "are tested (q: the share of such findings that chance would make).\n"
            "Use it every few sessions, when the same error comes up again, or when asked how the "
            "work is going. It needs recorded events, and may take seconds over a long history.\n"
            "Returns findings in words, strongest first, with the figures behind them and "
            "the sessions that show them.\n"
            'Example: {"analysis": "error_patterns", "from": "2026-01-01"}.'
        ),
        arguments=ReflectArguments,
        output=ReflectOutput,
        handler=reflect,
        read_only=True,
    ),
)
