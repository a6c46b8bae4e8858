"""What was spent, what changes, and how sessions differ, as tables, bars and sparklines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mneme._core.amounts import dollars
from mneme.cli import cells
from mneme.cli import reflect_cells as show
from mneme.cli.charts import bar, sparkline
from mneme.cli.output import Column, Output

if TYPE_CHECKING:
    from mneme.types import (
        Comparison,
        CostAnalysis,
        CostShare,
        ErrorChange,
        OutcomeBy,
        PerformancePoint,
        PerformanceTrends,
        SessionComparison,
        TrendStep,
        TrendTest,
    )


def cost_analysis(out: Output, result: CostAnalysis) -> None:
    """Write what was spent."""
    if not (result.total_cost_usd or result.total_input_tokens or result.total_output_tokens):
        return  # A note says that nothing was recorded.
    known = bool(result.total_cost_usd or result.costed_sessions)
    estimated = result.estimated_cost_usd
    tokens = (
        f"{cells.count(result.total_input_tokens)} read, "
        f"{cells.count(result.total_output_tokens)} written"
    )
    series = [p.cost_per_session for p in result.over_time]  # fmt: skip
    totals = [point.cost_usd for point in result.over_time]
    each = (
        f"{dollars(result.average_cost_per_session)} on average in "
        f"{cells.plural(result.costed_sessions, 'session')} whose cost is known"
        if result.costed_sessions
        else ""
    )
    out.facts(
        [
            ("Cost", dollars(result.total_cost_usd) if known else "not known"),
            ("Estimated", f"{dollars(estimated)} of it" if estimated else ""),
            ("A session", each),
            ("Tokens", tokens),
            ("Over time", f"{sparkline(totals)} total" if len(totals) > 1 else ""),
            ("", f"{sparkline(series)} a session") if len(totals) > 1 else ("", ""),
            ("Trend", _trend(result.cost_per_session, "cost of a session", dollars)),
        ]
    )
    for title, name, shares in (
        ("By model", "Model", result.by_model),
        ("By label", "Label", result.by_tag),
        ("By tool", "Tool", result.by_tool),
        ("By agent", "Agent", result.by_agent),
    ):
        rows = [_cost(share, priced=not result.unpriced_events) for share in shares]
        # One row without a name says no more than the total.
        if [share.key for share in shares] != [""]:
            show.section(out, title, _cost_columns(name), rows)
    dearest = [
        [dollars(op.cost_usd), cells.preview(op.event_id), cells.preview(op.model),
         cells.preview(op.description)]
        for op in result.most_expensive
    ]  # fmt: skip
    columns = (
        Column("Cost", right=True),
        Column("Event", style="dim", optional=2),
        Column("Model", style="cyan"),
        Column("What", flexible=True),
    )
    show.section(out, "Most expensive", columns, dearest)


def _cost_columns(name: str) -> tuple[Column, ...]:
    return (
        Column(name, flexible=True, style="cyan"),
        Column("Cost", right=True),
        Column("Share"),
        Column("Tokens read", right=True, optional=1),
        Column("Tokens written", right=True, optional=1),
        Column("Events", right=True),
    )


def _cost(share: CostShare, *, priced: bool) -> list[str]:
    """One row; `priced` tells that every model has a price, so that no cost is none."""
    known = bool(share.cost_usd) or priced
    return [
        cells.preview(share.key) or "(not said)",
        dollars(share.cost_usd) if known else "not known",
        f"{show.share(share.share):>6} {bar(share.share):<10}" if known else "",
        cells.count(share.input_tokens),
        cells.count(share.output_tokens),
        cells.count(share.event_count),
    ]


def _trend(test: TrendTest, what: str, form: Callable[[float], str]) -> str:
    """A trend in words: "cost of a session rises by $0.02 a day (between $0.01 and $0.03, 95 %), by
    $0.2 over 10 days; q 0.004"."""
    if test.trend is None:
        return "too few points to tell"
    if test.trend == "stable" and not test.small:
        return "no trend shown"
    if "step" in test:
        return f"{cells.name(test.trend)}: {what} {_step(test.step, form)}"
    verdict = "sure but small" if test.small else cells.name(test.trend)
    low, high = map(form, sorted(map(abs, (test.slope_interval.low, test.slope_interval.high))))
    between = f" (between {low} and {high}, 95 %)" if low != high else ""
    moves = "rises" if test.slope_per_day > 0 else "falls"
    over = f", by {form(abs(test.change))} over {cells.span(test.days * 86_400)}"
    return (
        f"{verdict}: {what} {moves} by {form(abs(test.slope_per_day))} "
        f"a day{between}{over if test.days else ''}; "
        f"q {show.q(test.q_value)}"
    )


def _step(step: TrendStep, form: Callable[[float], str]) -> str:
    """A change at one time in words: "fell from 100 % before 2026-05-12 00:00 to 0 % since"."""
    moved = "rose" if step.difference > 0 else "fell"
    return (
        f"{moved} from {form(step.before.value)} before {cells.when(step.since)} "
        f"to {form(step.after.value)} since; q {show.q(step.q_value)}"
    )


def performance_trends(out: Output, result: PerformanceTrends) -> None:
    """Write how the measures change."""
    if not result.points:
        return
    out.line(f"{cells.plural(len(result.points), 'span')} of {cells.span(result.bucket_seconds)}")
    rows = []
    for name, test, form, values in (
        ("success rate", result.success_rate, _points, _series(result, "success_rate")),
        ("latency, median", result.latency, _milliseconds, _series(result, "latency_p50_ms")),
        ("latency, p95", result.latency_p95, _milliseconds, _series(result, "latency_p95_ms")),
        ("sessions an hour", result.throughput, _number, _series(result, "sessions_per_hour")),
        ("errors a session", result.error_rate, _number, _errors(result.points)),
    ):
        known = [value for value in values if value is not None]
        if known:
            trend = _trend(test, "it", form)
            rows.append([name, sparkline(values), form(known[0]), form(known[-1]), trend])
    columns = (
        Column("Measure", style="cyan"),
        Column("Over time"),
        Column("First", right=True, optional=2),
        Column("Last", right=True, optional=2),
        Column("Trend", flexible=True),
    )
    show.section(out, "Trends", columns, rows)


def _series(result: PerformanceTrends, field: str) -> list[float | None]:
    return [getattr(point, field) for point in result.points]


def _errors(points: Iterable[PerformancePoint]) -> list[float | None]:
    """Errors a session; of a span whose sessions have no events nothing is known."""
    return [point.errors_per_session if point.told_count else None for point in points]


def _points(value: float) -> str:
    """A share or a change of one, to two digits: a small change is not "0 %"."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def _milliseconds(value: float) -> str:
    return f"{_number(value)} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def session_comparison(out: Output, result: SessionComparison) -> None:
    """Write how recent sessions differ from earlier ones, and how sessions end by what they are."""
    split = f", from {cells.when(result.split_time)} on" if result.split_time else ""
    out.line(
        f"{cells.count(result.recent_count)} recent sessions{split}, against "
        f"{cells.count(result.earlier_count)} earlier ones"
    )
    measures = (
        Column("Measure", style="cyan"),
        Column("Earlier", right=True),
        Column("Recent", right=True),
        Column("Difference (95 %)"),
        Column("Effect", right=True, optional=1),
        Column("q", right=True),
        Column("Verdict", style="bold"),
    )
    rows = [_comparison(c) for c in result.comparisons if c.recent_count or c.earlier_count]
    show.section(out, "Measures", measures, rows)
    for title, changes in (
        ("Errors in recent sessions only", _sure(result.new_errors)),
        ("Errors in earlier sessions only", _sure(result.gone_errors)),
    ):
        columns = (
            Column("Error", flexible=True),
            Column("Tool", style="cyan"),
            Column("Sessions", right=True),
            Column("q", right=True),
        )
        show.section(out, title, columns, [_change(change) for change in changes])

    for by in result.outcomes:
        _outcome(out, by)


def _sure(changes: Iterable[ErrorChange]) -> list[ErrorChange]:
    """Leave out those that chance alone keeps from the other side easily enough."""
    return [change for change in changes if change.q_value <= 0.05]


def _outcome(out: Output, by: OutcomeBy) -> None:
    """How sessions end by task, tag, project, agent or user."""
    groups = [
        [
            cells.preview(group.key),
            show.some_of(group.outcome.successes, group.outcome.sessions),
            f"{show.share(group.outcome.success_interval.low)} to "
            f"{show.share(group.outcome.success_interval.high)}",
            show.some_of(group.outcome.other_successes, group.outcome.other_sessions),
            show.q(group.outcome.q_value, tested=group.outcome.tested),
        ]
        for group in by.groups
    ]
    title = f"Success by {by.dimension}"
    if by.group_count > len(groups):
        title += f"; {len(groups)} of {by.group_count:,}, those that differ most"
    if by.tested:
        differs = "differ" if by.q_value <= 0.05 else "no difference shown"
        title += f" (all of them: {differs}, q {show.q(by.q_value)})"
    columns = (
        Column(by.dimension.capitalize(), flexible=True, style="cyan"),
        Column("Succeeded", right=True),
        Column("95 %"),
        Column("Others", right=True, optional=1),
        Column("q", right=True),
    )
    show.section(out, title, columns, groups)


def _comparison(comparison: Comparison) -> list[str]:
    interval = comparison.difference_interval
    tested = "difference_interval" in comparison
    difference = _signed(comparison.difference)
    if tested:
        difference += f" ({_signed(interval.low)} to {_signed(interval.high)})"
    undirected = "no difference shown" if tested else ""
    verdict = {
        "improving": "better",
        "degrading": "worse",
        "stable": "no difference shown",
    }.get(comparison.trend or "", "different" if comparison.differs else undirected)
    return [
        comparison.measure.replace("_", " "),
        _number(comparison.earlier_mean) if comparison.earlier_count else "",
        _number(comparison.recent_mean) if comparison.recent_count else "",
        difference,
        f"{comparison.effect_size:+.2f}" if tested else "",
        show.q(comparison.q_value, tested=tested),
        verdict,
    ]


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_number(abs(value))}"


def _change(change: ErrorChange) -> list[str]:
    return [
        cells.preview(change.template),
        cells.preview(change.tool_name),
        cells.count(change.sessions),
        show.q(change.q_value),
    ]
