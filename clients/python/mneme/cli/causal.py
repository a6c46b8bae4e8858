"""`mneme causal`: what brings about what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.nightly import nightly
from mneme.cli.operations import Wait, follow
from mneme.cli.options import Limit, Project, Tags, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.times import From, To
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import (
        CausalEdge,
        DiscoveredEffect,
        DiscoverRequestFields,
        DiscoverResponse,
        EdgeFilterFields,
    )

app = App(help="Cause and effect: edges, chains, and what episodes show.")
app.command()(nightly)

_COLUMNS = (
    Column("Cause", style="cyan"),
    Column("Effect", style="cyan"),
    Column("Uplift", right=True),
    Column("Confidence", right=True),
    Column("Sample", right=True, optional=2),
    Column("From", optional=1),
    Column("Edge", style="dim", optional=3),
)
_CHAIN_COLUMNS = (
    Column("Uplift", right=True),
    Column("Confidence", right=True),
    Column("Chain", style="cyan"),
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

EdgeId = Annotated[str, typer.Argument(metavar="EDGE", help="The edge's id.")]
Cause = Annotated[str | None, typer.Option(metavar="CAUSE", help="With this cause.")]
Effect = Annotated[str | None, typer.Option(metavar="EFFECT", help="With this effect.")]
Sure = Annotated[float | None, typer.Option("--min-confidence", min=0, max=1)]


@app.command()
def add(
    cli: Cli,
    *,
    cause: Annotated[
        str,
        typer.Argument(
            metavar="CAUSE",
            help="A label, or memory:ID, episode:ID, skill:ID, tag:NAME, tool:NAME.",
        ),
    ],
    effect: Annotated[str, typer.Argument(metavar="EFFECT", help="What it changes.")],
    uplift: Annotated[float, typer.Option(help="How much more of it there is.")],
    confidence: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    sample_size: Annotated[int | None, typer.Option(min=0)] = None,
    evidence: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="What speaks for it; repeatable.")
    ] = None,
    mechanism: Annotated[str | None, typer.Option(help="How it works.")] = None,
    metadata: Annotated[Any, typer.Option(parser=json_object, metavar="JSON")] = None,
) -> None:
    """Say that a cause changes an effect."""
    with cli.connect() as client:
        edge = client.add_edge(
            cause,
            effect,
            uplift=uplift,
            confidence=confidence,
            sample_size=sample_size,
            evidence_ids=evidence,
            mechanism=mechanism,
            metadata=metadata,
        ).edge
    cli.out.done(f"added {edge.id}: {edge.cause} → {edge.effect}", edge)


@app.command("list")
def list_(
    cli: Cli,
    *,
    cause: Cause = None,
    effect: Effect = None,
    min_confidence: Sure = None,
    limit: Limit = 50,
) -> None:
    """List edges, latest first."""
    with cli.connect() as client:
        walk = client.iter_edges(
            filter=cast(
                "EdgeFilterFields",
                {"cause": cause, "effect": effect, "min_confidence": min_confidence},
            ),
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, edge_id: EdgeId) -> None:
    """Show one edge."""
    with cli.connect() as client:
        edge = client.get_edge(edge_id).edge
    if cli.out.as_json:
        cli.out.message(edge)
    else:
        cli.out.facts(_facts(edge))


@app.command()
def delete(cli: Cli, *, edge_id: EdgeId, yes: Yes = False) -> None:
    """Delete an edge."""
    if not yes:
        typer.confirm(f"Delete the edge {edge_id}?", abort=True, err=True)
    with cli.connect() as client:
        gone = client.delete_edge(edge_id).edge
    cli.out.done(f"deleted {edge_id}: {gone.cause} → {gone.effect}", gone)


@app.command()
def query(
    cli: Cli,
    *,
    cause: Cause = None,
    effect: Effect = None,
    min_confidence: Sure = None,
    min_uplift: Annotated[
        float | None, typer.Option(min=0, help="At least this much, up or down.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    max_length: Annotated[
        int | None, typer.Option(min=1, max=10, help="Most edges that a chain may have.")
    ] = None,
) -> None:
    """Follow chains of edges: from a cause, to an effect, or from one to the other."""
    with cli.connect() as client:
        answer = client.query_effects(
            cause=cause,
            effect=effect,
            min_confidence=min_confidence,
            min_uplift=min_uplift,
            limit=limit,
            max_length=max_length,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [
        [
            f"{chain.uplift:+.3g}",
            f"{chain.confidence:.2f}",
            " → ".join([chain.cause, *(edge.effect for edge in chain.path)]),
        ]
        for chain in answer.chains
    ]
    cli.out.table(_CHAIN_COLUMNS, rows)
    if not rows:
        cli.out.remark("No chain is sure enough; --min-confidence lowers the bar.")
    if answer.assumption:
        cli.out.remark(answer.assumption)


@app.command()
def discover(
    cli: Cli,
    *,
    project: Project = None,
    tag: Tags = None,
    start: From = None,
    end: To = None,
    adjust_for: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="What else was known before: metadata, tag:NAME; repeatable."
        ),
    ] = None,
    min_attempts: Annotated[int | None, typer.Option(min=1)] = None,
    min_success_rate: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    min_confidence: Sure = None,
    fdr: Annotated[
        float | None, typer.Option(max=0.5, help="The share of what is found that may be chance.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be found.")
    ] = False,
    wait: Wait = True,
) -> None:
    """Estimate from episodes what labels, tools and skills change, and keep what is sure."""
    question: dict[str, Any] = {
        "filter": {"project": project, "tags": tag, "start_time": start, "end_time": end},
        "adjust_for": adjust_for,
        "min_attempts": min_attempts,
        "min_success_rate": min_success_rate,
        "min_confidence": min_confidence,
        "fdr": fdr,
        "dry_run": dry_run,
    }
    with cli.connect() as client:
        running = client.start_discover(question=cast("DiscoverRequestFields", question))
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


def _show_findings(cli: Cli, answer: DiscoverResponse) -> None:
    cli.out.table(_FOUND_COLUMNS, _found_rows(answer.findings))
    adjusted = ", ".join(answer.adjusted_for) or "nothing"
    cli.out.remark(
        f"{cells.plural(answer.episode_count, 'episode')} looked at; adjusted for {adjusted}."
    )
    for left in answer.not_adjusted_for:
        why = _WHY_NOT_ADJUSTED.get(left.why, cells.name(left.why))
        cli.out.remark(f"Not adjusted for {left.name}: {why}.")
    if answer.refused_count:
        few = sum(one.why == "too_few" for one in answer.refused)
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


def _row(edge: CausalEdge) -> list[str]:
    return [
        edge.cause,
        edge.effect,
        f"{edge.uplift:+.3g}",
        f"{edge.confidence:.2f}",
        cells.count(edge.sample_size),
        cells.name(edge.origin),
        edge.id,
    ]


def _facts(edge: CausalEdge) -> list[tuple[str, str]]:
    interval = ""
    if edge.low is not None and edge.high is not None:
        interval = f" (95 %: {edge.low:+.3g} to {edge.high:+.3g})"
    facts = [
        ("Cause", edge.cause),
        ("Effect", edge.effect),
        ("Uplift", f"{edge.uplift:+.3g}{interval}"),
        ("Confidence", f"{edge.confidence:.3g}"),
        ("Sample", cells.count(edge.sample_size)),
        ("From", cells.name(edge.origin)),
        ("Mechanism", edge.mechanism),
        ("Evidence", ", ".join(edge.evidence_ids)),
        ("Experiments", ", ".join(edge.experiment_ids)),
        ("Added", cells.when(edge.created_at)),
        ("Changed", cells.when(edge.updated_at)),
    ]
    return [(name, value) for name, value in facts if value]
