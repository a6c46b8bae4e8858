"""What an analysis found, as tables, bars and sparklines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli.charts import bar, sparkline
from mneme.cli.output import Column, Output

if TYPE_CHECKING:
    from mneme.types import (
        Comparison,
        CostAnalysis,
        CostShare,
        ErrorChange,
        ErrorPatterns,
        Interval,
        PerformancePoint,
        PerformanceTrends,
        ReflectResponse,
        SequenceEffect,
        SessionComparison,
        ToolSequences,
        TrendTest,
    )

_EFFECTS = (
    Column("After", flexible=True),
    Column("Likelier"),
    Column("Seen", right=True),
    Column("Else", right=True),
    Column("q", right=True),
)
_EFFECT_NAMES = ("call_fails", "error_follows")
_PRECEDING = 3
_DAY = len("2026-01-31")


def show(out: Output, answer: ReflectResponse) -> None:
    """Write the result of an analysis."""
    shown: dict[str, Callable[[], None]] = {
        "error_patterns": lambda: _error_patterns(out, answer.error_patterns),
        "tool_sequences": lambda: _tool_sequences(out, answer.tool_sequences),
        "cost_analysis": lambda: _cost_analysis(out, answer.cost_analysis),
        "performance_trends": lambda: _performance_trends(out, answer.performance_trends),
        "session_comparison": lambda: _session_comparison(out, answer.session_comparison),
    }
    kind = answer.raw.WhichOneof("result")
    if kind in shown:
        shown[kind]()


def lifted(lift: float, interval: Interval) -> str:
    """A ratio with its interval, "2.3× (1.4–3.8)"."""
    return f"{_ratio(lift)}× ({_ratio(interval.low)}–{_ratio(interval.high)})"


def _ratio(value: float) -> str:
    return (
        f"{value:,.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 0.095 else f"{value:.2f}"
    )


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.095 or not value else f"{100 * value:.1f} %"


def _q(value: float, *, tested: bool = True) -> str:
    if not tested:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.995 or not amount else f"${amount:.2g}"


def _tools(tools: Iterable[str]) -> str:
    return cells.preview(" → ".join(tool or "(unnamed)" for tool in tools))


def _section(out: Output, title: str, columns: Sequence[Column], rows: list[list[str]]) -> None:
    if rows:
        out.line("")
        out.line(title)
        out.table(columns, rows)


def _effect(effect: SequenceEffect, *before: str) -> list[str]:
    return [
        *before,
        _tools(effect.tools),
        lifted(effect.lift, effect.lift_interval),
        f"{cells.count(effect.effect_count)} of {cells.count(effect.count)}",
        _share(effect.base_rate),
        _q(effect.q_value, tested=effect.tested),
    ]


def _error_patterns(out: Output, result: ErrorPatterns) -> None:
    if not result.patterns:
        out.line("No errors.")
        return
    columns = (
        Column("#", right=True, style="dim"),
        Column("Error", flexible=True),
        Column("Tool", style="cyan"),
        Column("Count", right=True),
        Column("Sessions", right=True),
        Column("Of calls", right=True, optional=3),
        Column("First seen", style="dim", optional=2),
        Column("Last seen", style="dim", optional=1),
    )
    rows = [
        [
            str(number),
            cells.preview(pattern.template),
            cells.preview(pattern.tool_name),
            cells.count(pattern.count),
            cells.count(pattern.sessions_affected),
            _share(pattern.rate) if pattern.tool_name else "",
            cells.when(pattern.first_seen)[:_DAY],
            cells.when(pattern.last_seen)[:_DAY],
        ]
        for number, pattern in enumerate(result.patterns, start=1)
    ]
    shown = f"{cells.plural(result.error_count, 'error')}"
    if result.pattern_count > len(rows):
        shown += f"; the {len(rows)} most frequent of {result.pattern_count:,} patterns"
    _section(out, shown, columns, rows)
    preceding = [
        _effect(effect, str(number))
        for number, pattern in enumerate(result.patterns, start=1)
        for effect in _telling(pattern.preceding)
    ]
    number_column = Column("#", right=True, style="dim")
    _section(out, "What came before them", (number_column, *_EFFECTS), preceding)


def _telling(effects: Iterable[SequenceEffect]) -> list[SequenceEffect]:
    """Those that came before the error more than once, or surely go with it."""
    chosen = [e for e in effects if e.effect_count > 1 or (e.tested and e.q_value <= 0.05)]
    return chosen[:_PRECEDING]


def _tool_sequences(out: Output, result: ToolSequences) -> None:
    if not result.common:
        out.line("No sequences of tools.")
        return
    out.line(
        f"{cells.plural(result.sequence_count, 'sequence')}; "
        f"{result.average_length:.1f} tool calls a session on average"
    )
    most = max(found.count for found in result.common)
    common = [
        [
            _tools(found.tools),
            f"{cells.count(found.count)} {bar(found.count / most):<10}",
            cells.count(found.sessions),
            _share(found.support),
        ]
        for found in result.common
    ]
    columns = (
        Column("Tools", flexible=True),
        Column("Count"),
        Column("Sessions", right=True),
        Column("Support", right=True),
    )
    _section(out, "Most common", columns, common)
    before = (
        ("error_follows", "Before errors outside tools", result.before_errors),
        ("call_fails", "Before a call that fails", result.before_errors),
        ("success", "In sessions that succeed", result.before_success),
        ("failure", "In sessions that fail", result.before_failure),
    )
    for effect, title, effects in before:
        # What makes a success rarer makes a failure likelier, and is shown there.
        rows = [
            _effect(found)
            for found in effects
            if found.effect == effect and (effect in _EFFECT_NAMES or found.lift > 1)
        ]
        first = "After" if effect in _EFFECT_NAMES else "With"
        _section(out, title, (Column(first, flexible=True), *_EFFECTS[1:]), rows)
    loops = [
        [
            cells.preview(loop.tool),
            cells.count(loop.longest_run),
            cells.count(loop.runs),
            cells.preview(loop.arguments),
        ]
        for loop in result.loops
    ]
    columns = (
        Column("Tool", style="cyan"),
        Column("Longest", right=True),
        Column("Runs", right=True),
        Column("Arguments", flexible=True),
    )
    _section(out, "The same call again and again", columns, loops)


def _cost_analysis(out: Output, result: CostAnalysis) -> None:
    estimated = result.estimated_cost_usd
    tokens = (
        f"{cells.count(result.total_input_tokens)} read, "
        f"{cells.count(result.total_output_tokens)} written"
    )
    series = [p.cost_per_session
              for p in result.over_time]  # fmt: skip
    out.facts(
        [
            ("Cost", _dollars(result.total_cost_usd)),
            ("Estimated", f"{_dollars(estimated)} of it" if estimated else ""),
            ("A session", _dollars(result.average_cost_per_session)),
            ("Tokens", tokens),
            ("Over time", f"{sparkline([p.cost_usd for p in result.over_time])} total"),
            ("", f"{sparkline(series)} a session") if len(series) > 1 else ("", ""),
            ("Trend", _trend(result.cost_per_session, "cost of a session", _dollars)),
        ]
    )
    for title, name, shares in (
        ("By model", "Model", result.by_model),
        ("By label", "Label", result.by_tag),
        ("By tool", "Tool", result.by_tool),
        ("By agent", "Agent", result.by_agent),
    ):
        rows = [_cost(share) for share in shares]
        # One row without a name says no more than the total.
        if [share.key for share in shares] != [""]:
            _section(out, title, _cost_columns(name), rows)
    dearest = [
        [_dollars(op.cost_usd), cells.preview(op.event_id), cells.preview(op.model),
         cells.preview(op.description)]
        for op in result.most_expensive
    ]  # fmt: skip
    columns = (
        Column("Cost", right=True),
        Column("Event", style="dim", optional=2),
        Column("Model", style="cyan"),
        Column("What", flexible=True),
    )
    _section(out, "Most expensive", columns, dearest)


def _cost_columns(name: str) -> tuple[Column, ...]:
    return (
        Column(name, flexible=True, style="cyan"),
        Column("Cost", right=True),
        Column("Share"),
        Column("Tokens read", right=True, optional=1),
        Column("Tokens written", right=True, optional=1),
        Column("Events", right=True),
    )


def _cost(share: CostShare) -> list[str]:
    return [
        cells.preview(share.key) or "(not said)",
        _dollars(share.cost_usd),
        f"{_share(share.share):>6} {bar(share.share):<10}",
        cells.count(share.input_tokens),
        cells.count(share.output_tokens),
        cells.count(share.event_count),
    ]


def _trend(test: TrendTest, what: str, form: Callable[[float], str]) -> str:
    """A trend in words: "the cost of a session rises by $0.02 a day ($0.01–$0.03), q 0.004"."""
    if test.trend is None:
        return "too few points to tell"
    if test.trend == "stable":
        return f"stable (q {_q(test.q_value)})"
    ends = sorted((abs(test.slope_interval.low), abs(test.slope_interval.high)))
    moves = "rises" if test.slope_per_day > 0 else "falls"
    return (
        f"{cells.name(test.trend)}: {what} {moves} by {form(abs(test.slope_per_day))} "
        f"a day ({form(ends[0])}–{form(ends[1])}), q {_q(test.q_value)}"
    )


def _performance_trends(out: Output, result: PerformanceTrends) -> None:
    if not result.points:
        return
    out.line(f"{cells.plural(len(result.points), 'span')} of {cells.span(result.bucket_seconds)}")
    rows = []
    for name, test, form, values in (
        ("success rate", result.success_rate, _share, _series(result, "success_rate")),
        ("latency, median", result.latency, _milliseconds, _series(result, "latency_p50_ms")),
        ("latency, p95", result.latency_p95, _milliseconds, _series(result, "latency_p95_ms")),
        ("sessions an hour", result.throughput, _number, _series(result, "sessions_per_hour")),
        ("errors a session", result.error_rate, _number, _errors(result.points)),
    ):
        known = [value for value in values if value is not None]
        if known:
            rows.append(
                [name, sparkline(values), form(known[0]), form(known[-1]), _trend(test, "it", form)]
            )
    columns = (
        Column("Measure", style="cyan"),
        Column("Over time"),
        Column("First", right=True, optional=2),
        Column("Last", right=True, optional=2),
        Column("Trend", flexible=True),
    )
    _section(out, "Trends", columns, rows)


def _series(result: PerformanceTrends, field: str) -> list[float | None]:
    return [getattr(point, field) for point in result.points]


def _errors(points: Iterable[PerformancePoint]) -> list[float | None]:
    """Errors a session; a span without sessions has none to divide by."""
    return [point.errors_per_session if point.session_count else None for point in points]


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 9.95 else f"{value:.1f} ms"


def _number(value: float) -> str:
    return f"{value:,.3g}"


def _session_comparison(out: Output, result: SessionComparison) -> None:
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
    _section(out, "Measures", measures, rows)
    for title, changes in (
        ("Errors that only recent sessions have", result.new_errors),
        ("Errors that only earlier sessions had", result.gone_errors),
    ):
        columns = (
            Column("Error", flexible=True),
            Column("Tool", style="cyan"),
            Column("Sessions", right=True),
            Column("q", right=True),
        )
        _section(out, title, columns, [_change(change) for change in changes])


def _comparison(comparison: Comparison) -> list[str]:
    interval = comparison.difference_interval
    tested = "difference_interval" in comparison
    difference = f"{comparison.difference:+,.3g}"
    if tested:
        difference += f" ({interval.low:+,.3g} to {interval.high:+,.3g})"
    sure = tested and comparison.q_value <= 0.05 and comparison.effect_size
    verdict = {
        "improving": "better",
        "degrading": "worse",
        "stable": "no difference shown",
    }.get(comparison.trend or "", "different" if sure else "")
    return [
        comparison.measure.replace("_", " "),
        _number(comparison.earlier_mean) if comparison.earlier_count else "",
        _number(comparison.recent_mean) if comparison.recent_count else "",
        difference,
        f"{comparison.effect_size:+.2f}" if tested else "",
        _q(comparison.q_value, tested=tested),
        verdict,
    ]


def _change(change: ErrorChange) -> list[str]:
    return [
        cells.preview(change.template),
        cells.preview(change.tool_name),
        cells.count(change.sessions),
        _q(change.q_value),
    ]
