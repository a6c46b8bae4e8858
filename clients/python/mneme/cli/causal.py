"""`mneme causal`: what brings about what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import EdgeOriginChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, choice, flag, number, option, text, texts
from mneme.cli.nightly import nightly
from mneme.cli.operations import Wait, follow
from mneme.cli.options import BestOf, Etag, Project, Tags, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.times import From, To
from mneme.cli.values import without_empty

if TYPE_CHECKING:
    from mneme.types import CausalChain, CausalEdge, DiscoveredEffect, DiscoverResult

app = App(help="Cause and effect: edges, chains, and what episodes show.")
app.command()(nightly)


def _uplift(edge: CausalEdge) -> str:
    if edge.low is None or edge.high is None:
        return f"{edge.uplift:+.3g}"
    return f"{edge.uplift:+.3g} (95 %: {edge.low:+.3g} to {edge.high:+.3g})"


def _path(chain: CausalChain) -> str:
    return " → ".join([chain.cause, *(edge.effect for edge in chain.path)])


_CHAIN_COLUMNS = (
    Column("Uplift", "uplift:+.3g", right=True),
    Column("Confidence", "confidence:.2f", right=True),
    Column("Chain", _path, style="cyan"),
)
_FOUND_COLUMNS = (
    Column("Cause", style="cyan"),
    Column("Outcome"),
    Column("Uplift", right=True),
    Column("95 %"),
    Column("Plain", right=True, optional=1),
    Column("q", right=True),
    Column("With", right=True, optional=2),
    Column("Without", right=True, optional=2),
    Column("Became"),
)

_SURE = number(None, "--min-confidence", min=0, max=1)
_FILTER = Fields(
    cause=text("With this cause.", metavar="CAUSE"),
    effect=text("With this effect.", metavar="EFFECT"),
    min_confidence=_SURE,
)

_edges = Resource(
    app,
    "edge",
    key=Fields(edge_id=argument("EDGE", "The edge's id.")),
    columns=(
        Column("Cause", "cause", style="cyan"),
        Column("Effect", "effect", style="cyan"),
        Column("Uplift", "uplift:+.3g", right=True),
        Column("Confidence", "confidence:.2f", right=True),
        Column("Sample", "sample_size", right=True, optional=2),
        Column("From", "origin", optional=1),
        Column("Edge", "id", style="dim", optional=3),
    ),
    facts={
        "Cause": "cause",
        "Effect": "effect",
        "Uplift": _uplift,
        "Confidence": "confidence:.3g",
        "Sample": "sample_size",
        "From": "origin",
        "Mechanism": "mechanism",
        "Evidence": lambda it: cells.clean(", ".join(it.evidence_ids)),
        "Experiments": lambda it: cells.clean(", ".join(it.experiment_ids)),
        "Added": "created_at",
        "Changed": "updated_at",
        "Etag": "etag",
    },
)
_edges.create(
    "create_edge",
    "Say that a cause changes an effect.",
    Fields(
        cause=argument(
            "CAUSE", "A label, or memory:ID, episode:ID, skill:ID, tag:NAME, tool:NAME."
        ),
        effect=argument("EFFECT", "What it changes."),
        uplift=option(float, "How much more of it there is."),
        confidence=number(min=0, max=1),
        sample_size=number(kind=int, min=0),
        evidence_ids=texts("What speaks for it; repeatable.", "--evidence", metavar="ID"),
        mechanism=text("How it works."),
        metadata=free_json(),
    ),
    name="add",
    said="added {0.id}: {0.cause} → {0.effect}",
)
_edges.list(
    "iter_edges",
    "List edges, latest first.",
    Fields(filter=Fields(**_FILTER, origin=choice(EdgeOriginChoice, "With this origin."))),
)
_edges.get("get_edge", "Show one edge.")
_edges.change(
    "update",
    "update_edge",
    "Change the given fields of an edge; one whose figures change is stated from then on.",
    Fields(
        uplift=number("How much more of the effect there is."),
        confidence=number(min=0, max=1),
        sample_size=number(kind=int, min=0),
        evidence_ids=texts(
            "What speaks for it from now on; repeatable.",
            "--evidence",
            metavar="ID",
            sent=without_empty,
        ),
        mechanism=text("How it works."),
        metadata=free_json(),
        etag=Etag,
    ),
    said="updated {edge_id}: {0.cause} → {0.effect}",
)
_edges.change(
    "delete",
    "delete_edge",
    "Delete an edge.",
    Fields(etag=Etag),
    said="deleted {edge_id}: {0.cause} → {0.effect}",
    confirm="Delete the edge {edge_id}?",
)


@app.command()
def query(
    cli: Cli,
    *,
    asked: Annotated[
        Any,
        Fields(**_FILTER, min_uplift=number("At least this much, up or down.", min=0)),
    ],
    limit: BestOf = 10,
    max_length: Annotated[
        int | None, typer.Option(min=1, max=10, help="Most edges that a chain may have.")
    ] = None,
) -> None:
    """Follow chains of edges: from a cause, to an effect, or from one to the other."""
    with cli.connect() as client:
        answer = client.trace_effects(**asked, limit=limit, max_length=max_length)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.things(_CHAIN_COLUMNS, answer.chains)
    if not answer.chains:
        cli.out.remark("No chain is sure enough; --min-confidence lowers the bar.")
    if answer.assumption:
        cli.out.remark(answer.assumption)


@app.command()
def discover(
    cli: Cli,
    *,
    question: Annotated[
        Any,
        Fields(
            filter=Fields(project=Project, tags=Tags, start_time=From, end_time=To),
            adjust_for=texts(
                "What else was known before: metadata, tag:NAME; repeatable.", metavar="NAME"
            ),
            min_attempts=number(kind=int, min=1),
            min_success_rate=number(min=0, max=1),
            min_confidence=_SURE,
            fdr=number("The share of what is found that may be chance.", max=0.5),
            dry_run=flag("Only show what would be found.", "--dry-run"),
        ),
    ],
    wait: Wait = True,
) -> None:
    """Estimate from episodes what labels, tools and skills change, and keep what is sure."""
    with cli.connect() as client:
        running = client.discover(question=question)
        answer = follow(cli, running, wait=wait)
    if answer is None:
        return
    if cli.out.as_json:
        cli.out.message(answer)
        return
    _show_findings(cli, answer)


_WHY_NOT_ADJUSTED: Mapping[str | None, str] = {
    "same_in_all": "all episodes have the same",
    "too_few_alike": "no value is shared by 10 episodes",
}


def _show_findings(cli: Cli, answer: DiscoverResult) -> None:
    cli.out.table(_FOUND_COLUMNS, _found_rows(answer.findings))
    adjusted = ", ".join(answer.adjusted_for) or "nothing"
    cli.out.remark(
        f"{cells.plural(answer.episode_count, 'episode')} looked at; adjusted for {adjusted}."
    )
    for left in answer.not_adjusted_for:
        why = _WHY_NOT_ADJUSTED.get(left.why, cells.name(left.why))
        cli.out.remark(f"Not adjusted for {left.name}: {why}.")
    if answer.refused_count:
        few = sum(one.why == "too_few" for one in answer.refused_causes)
        cli.out.remark(
            f"Not estimated: {cells.plural(few, 'cause')} that too few episodes had or lacked, and"
            f" {answer.refused_count - few} without counterparts or differences; --json lists them."
        )
    if answer.removed_count:
        cli.out.remark(f"{cells.plural(answer.removed_count, 'edge')} no longer held, and went.")
    if answer.truncated:
        cli.out.remark("Only the latest episodes, or the most frequent causes, were looked at.")


def _found_rows(findings: Iterable[DiscoveredEffect]) -> list[list[str]]:
    """One row for outcomes with the same figures, as reward and success are where all rewards are
    0 or 1."""
    outcomes: dict[tuple[str, ...], list[str]] = {}
    for one in findings:
        cause, outcome, *figures = _found_row(one)
        outcomes.setdefault((cause, *figures), []).append(outcome)
    return [[key[0], ", ".join(alike), *key[1:]] for key, alike in outcomes.items()]


def _found_row(one: DiscoveredEffect) -> list[str]:
    return [
        one.cause,
        one.outcome,
        f"{one.uplift:+.3g}",
        f"{one.low:+.3g} to {one.high:+.3g}",
        f"{one.plain_difference:+.3g}",
        f"{one.q_value:.2g}",
        f"{one.mean_with:.3g}",
        f"{one.mean_without:.3g}",
        cells.name(one.change),
    ]
