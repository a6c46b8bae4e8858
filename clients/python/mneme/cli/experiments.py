"""`mneme experiments`: what follows when chance decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.options import Limit, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Experiment, ExperimentArm, ExperimentResult

app = App(help="Experiments: chance decides who gets a cause.")

_COLUMNS = (
    Column("Experiment", style="cyan"),
    Column("Name"),
    Column("Cause"),
    Column("Effect"),
    Column("Status"),
    Column("Assigned", right=True, optional=1),
    Column("Observed", right=True, optional=2),
)

ExperimentId = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="The experiment's id.")]


@app.command()
def create(
    cli: Cli,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    cause: Annotated[str, typer.Option(help="What treated subjects get.")],
    effect: Annotated[str, typer.Option(help="What is measured of all.")],
    experiment_id: Annotated[str | None, typer.Option("--id", metavar="ID")] = None,
    description: Annotated[str | None, typer.Option(help="What is expected, and why.")] = None,
    block_size: Annotated[int | None, typer.Option(min=2, max=100)] = None,
    treated_per_block: Annotated[int | None, typer.Option(min=1, max=99)] = None,
    seed: Annotated[str | None, typer.Option(help="Seed that chance is drawn from.")] = None,
) -> None:
    """Create an experiment."""
    with cli.connect() as client:
        made = client.create_experiment(
            name,
            cause,
            effect=effect,
            description=description,
            block_size=block_size,
            treated_per_block=treated_per_block,
            seed=seed,
            experiment_id=experiment_id,
        ).experiment
    cli.out.done(f"created {made.id}", made)


@app.command("list")
def list_(cli: Cli, *, limit: Limit = 50) -> None:
    """List experiments, latest first."""
    with cli.connect() as client:
        walk = client.iter_experiments(page_size=page_size(limit))
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, experiment_id: ExperimentId) -> None:
    """Show an experiment."""
    with cli.connect() as client:
        found = client.get_experiment(experiment_id).experiment
    if cli.out.as_json:
        cli.out.message(found)
    else:
        cli.out.facts(_facts(found))


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


@app.command()
def delete(cli: Cli, *, experiment_id: ExperimentId, yes: Yes = False) -> None:
    """Delete an experiment with its observations."""
    if not yes:
        typer.confirm(f"Delete the experiment {experiment_id}?", abort=True, err=True)
    with cli.connect() as client:
        gone = client.delete_experiment(experiment_id).experiment
    cli.out.done(f"deleted {experiment_id}", gone)


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


def _row(one: Experiment) -> list[str]:
    return [
        one.id,
        one.name,
        one.cause,
        one.effect,
        cells.name(one.status),
        cells.count(one.assigned_count),
        cells.count(one.observation_count),
    ]


def _facts(one: Experiment) -> list[tuple[str, str]]:
    facts = [
        ("Experiment", one.id),
        ("Name", one.name),
        ("Cause", one.cause),
        ("Effect", one.effect),
        ("Description", one.description),
        ("Blocks", f"{one.treated_per_block} of {one.block_size} are treated"),
        ("Seed", one.seed),
        ("Status", cells.name(one.status)),
        ("Assigned", cells.count(one.assigned_count)),
        ("Observed", cells.count(one.observation_count)),
        ("Created", cells.when(one.created_at)),
        ("Edge", one.edge_id),
    ]
    return [(name, value) for name, value in facts if value]
