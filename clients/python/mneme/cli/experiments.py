"""`mneme experiments`: what follows when chance decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import ExperimentStatusChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, choice, number, option, text
from mneme.cli.options import Etag, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import ExperimentArm, ExperimentResult

app = App(help="Experiments: chance decides who gets a cause.")

ExperimentId = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="The experiment's id.")]

_experiments = Resource(
    app,
    "experiment",
    key=Fields(experiment_id=ExperimentId),
    columns=(
        Column("Experiment", "id", style="cyan"),
        Column("Name", "name"),
        Column("Cause", "cause"),
        Column("Effect", "effect"),
        Column("Status", "status"),
        Column("Assigned", "assigned_count", right=True, optional=1),
        Column("Observed", "observation_count", right=True, optional=2),
    ),
    facts={
        "Experiment": "id",
        "Name": "name",
        "Cause": "cause",
        "Effect": "effect",
        "Description": "description",
        "Blocks": lambda it: f"{it.treated_per_block} of {it.block_size} are treated",
        "Seed": "seed",
        "Status": "status",
        "Assigned": "assigned_count",
        "Observed": "observation_count",
        "Created": "created_at",
        "Edge": "edge_id",
        "Etag": "etag",
    },
)
_experiments.create(
    "create_experiment",
    "Create an experiment.",
    Fields(
        name=argument("NAME", "What it is called."),
        cause=option(str, "What treated subjects get."),
        effect=option(str, "What is measured of all."),
        experiment_id=text(None, "--id", metavar="ID"),
        description=text("What is expected, and why."),
        block_size=number(kind=int, min=2, max=100),
        treated_per_block=number(kind=int, min=1, max=99),
        seed=text("Seed that chance is drawn from."),
    ),
    said="created {0.id}",
)
_experiments.list(
    "iter_experiments",
    "List experiments, latest first.",
    Fields(status=choice(ExperimentStatusChoice, "With this status.")),
)
_experiments.get("get_experiment", "Show an experiment.")


@app.command()
def assign(
    cli: Cli,
    *,
    experiment_id: ExperimentId,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Whom or what to assign.")],
    stratum: Annotated[
        str | None, typer.Option(help="The group within which arms are balanced, e.g. a project.")
    ] = None,
) -> None:
    """Let chance decide whether a subject is treated; asked again, the answer is the same."""
    with cli.connect() as client:
        answer = client.assign_treatment(experiment_id, subject, stratum=stratum)
    cli.out.done("treatment" if answer.treatment else "control", answer)


@app.command()
def observe(
    cli: Cli,
    *,
    experiment_id: ExperimentId,
    outcome: Annotated[float, typer.Argument(metavar="OUTCOME", help="0, 1 or any number.")],
    subject: Annotated[str | None, typer.Option(help="Whom it was observed for.")] = None,
    treatment: Annotated[
        bool | None,
        typer.Option("--treatment/--control", help="Its arm, if chance did not decide."),
    ] = None,
    context: Annotated[Any, typer.Option(parser=json_object, metavar="JSON")] = None,
    observation_id: Annotated[str | None, typer.Option("--id", metavar="ID")] = None,
) -> None:
    """Record what came of a subject."""
    with cli.connect() as client:
        answer = client.record_observation(
            experiment_id,
            outcome=outcome,
            subject=subject,
            treatment=treatment,
            context=context,
            observation_id=observation_id,
        )
    arm = "treatment" if answer.treatment else "control"
    said = cells.plural(answer.observation_count, "observation")
    cli.out.done(f"recorded {answer.observation_id} ({arm}; {said} now)", answer)


@app.command()
def analyze(cli: Cli, *, experiment_id: ExperimentId) -> None:
    """Show what the observations say so far."""
    with cli.connect() as client:
        answer = client.analyze_experiment(experiment_id)
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        _show(cli, answer.result)


@app.command()
def conclude(
    cli: Cli,
    *,
    experiment_id: ExperimentId,
    edge: Annotated[bool, typer.Option("--edge/--no-edge", help="Make an edge from it.")] = True,
) -> None:
    """End an experiment: its result stays as it is."""
    with cli.connect() as client:
        answer = client.conclude_experiment(experiment_id, without_edge=not edge)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    if answer.experiment.result is not None:
        _show(cli, answer.experiment.result)
    if answer.edge is not None:
        cli.out.remark(f"Edge {answer.edge.id}: {answer.edge.cause} → {answer.edge.effect}.")


_experiments.change(
    "update",
    "update_experiment",
    'Change what an experiment is called and what is said of it; "" empties a field.',
    Fields(
        name=text(),
        description=text("What is expected, and why."),
        metadata=free_json("Free JSON."),
        etag=Etag,
    ),
    said="updated {experiment_id}",
)
_experiments.change(
    "delete",
    "delete_experiment",
    "Delete an experiment with its observations.",
    Fields(etag=Etag),
    said="deleted {experiment_id}",
    confirm="Delete the experiment {experiment_id}?",
)


def _show(cli: Cli, result: ExperimentResult) -> None:
    facts = [("Treatment", _arm(result.treatment)), ("Control", _arm(result.control))]
    if result.uplift is not None:
        facts.append(("Uplift", f"{result.uplift:+.4g}"))
    if result.p_value is not None:
        facts.append(("One look", _interval(result.low, result.high, f"p = {result.p_value:.3g}")))
        facts.append(("Any look", _interval(result.sequential_low, result.sequential_high)))
    cli.out.facts(facts)
    for note in result.notes:
        cli.out.remark(note)


def _arm(arm: ExperimentArm | None) -> str:
    if arm is None or arm.mean is None:
        return "no subjects"
    deviation = "" if arm.deviation is None else f", deviation {arm.deviation:.3g}"
    return f"{cells.plural(arm.count, 'subject')}, mean {arm.mean:.4g}{deviation}"


def _interval(low: float | None, high: float | None, more: str = "") -> str:
    if low is None or high is None:
        return "nothing can be said yet"
    return f"95 %: {low:+.4g} to {high:+.4g}{', ' if more else ''}{more}"
