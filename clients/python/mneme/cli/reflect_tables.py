"""What an analysis found, as tables, bars and sparklines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli import reflect_cells as show
from mneme.cli.charts import bar
from mneme.cli.output import Column, Output
from mneme.cli.reflect_figures import cost_analysis, performance_trends, session_comparison

if TYPE_CHECKING:
    from mneme.types import ErrorPatterns, ReflectResponse, SequenceEffect, ToolSequences

_EFFECT_NAMES = ("call_fails", "error_follows")
_PRECEDING = 3
_DAY = len("2026-01-31")


def show_result(out: Output, answer: ReflectResponse) -> None:
    """Write the result of an analysis."""
    shown: dict[str, Callable[[], None]] = {
        "error_patterns": lambda: _error_patterns(out, answer.error_patterns),
        "tool_sequences": lambda: _tool_sequences(out, answer.tool_sequences),
        "cost_analysis": lambda: cost_analysis(out, answer.cost_analysis),
        "performance_trends": lambda: performance_trends(out, answer.performance_trends),
        "session_comparison": lambda: session_comparison(out, answer.session_comparison),
    }
    kind = answer.raw.WhichOneof("result")
    if kind in shown:
        shown[kind]()


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
            show.share(pattern.rate) if pattern.tool_name else "",
            cells.when(pattern.first_seen)[:_DAY],
            cells.when(pattern.last_seen)[:_DAY],
        ]
        for number, pattern in enumerate(result.patterns, start=1)
    ]
    shown = f"{cells.plural(result.error_count, 'error')}"
    if result.pattern_count > len(rows):
        shown += f"; the {len(rows)} most frequent of {result.pattern_count:,} patterns"
    show.section(out, shown, columns, rows)
    number_column = Column("#", right=True, style="dim")
    numbered = list(enumerate(result.patterns, start=1))
    preceding = [
        [
            str(number),
            show.tools(effect.tools),
            f"{cells.count(effect.effect_count)} of {cells.count(pattern.count)}",
            *show.effect(effect)[1:],
        ]
        for number, pattern in numbered
        for effect in _telling(pattern.preceding)
    ]
    before = (
        number_column, Column("After", flexible=True), Column("Errors", right=True),
        *show.EFFECTS[1:],
    )  # fmt: skip
    show.section(out, "What was called just before them", before, preceding)
    _ends(out, result, number_column)
    followed = [
        [str(number), _WAYS.get(way.kind, way.kind), show.tools(way.tools),
         cells.count(way.sessions)]
        for number, pattern in numbered
        for way in pattern.recoveries
    ]  # fmt: skip
    then = (
        number_column, Column("Then"), Column("Calls", flexible=True),
        Column("Sessions", right=True),
    )  # fmt: skip
    title = "What followed the last of them in sessions that succeeded anyway"
    show.section(out, title, then, followed)


_WAYS = {
    "same_call": "the same call went through",
    "other_arguments": "it went through with other arguments",
    "same_tool": "it went through, with arguments that are not known",
    "other_tool": "another tool",
    "no_call": "no further call went through",
}


def _ends(out: Output, result: ErrorPatterns, number_column: Column) -> None:
    """How the sessions ended in which an error occurred, against all others."""
    rows = [
        [str(number), *show.succeeded(pattern.outcome)]
        for number, pattern in enumerate(result.patterns, start=1)
        if pattern.outcome.tested
    ]
    if result.outcome.tested:
        rows.insert(0, ["any", *show.succeeded(result.outcome)])
    columns = (
        number_column, Column("With it, succeeded", right=True), Column("Others", right=True),
        Column("q", right=True),
    )  # fmt: skip
    show.section(out, "How the sessions ended in which they occurred", columns, rows)


def _telling(effects: Iterable[SequenceEffect]) -> list[SequenceEffect]:
    """Those that came before the error more than once, or surely go with it."""
    return [e for e in effects if e.effect_count > 1 or e.sure][:_PRECEDING]


def _tool_sequences(out: Output, result: ToolSequences) -> None:
    if not result.tools:
        out.line("No tool calls.")
        return
    out.line(
        f"{cells.plural(result.sequence_count, 'sequence')}; "
        f"{result.average_length:.1f} tool calls a session on average"
    )
    used = [
        [
            cells.preview(use.tool) or "(unnamed)",
            cells.count(use.count),
            cells.count(use.sessions),
            show.some_of(use.failed, use.count) if use.failed else "none",
        ]
        for use in result.tools
    ]
    columns = (
        Column("Tool", flexible=True, style="cyan"),
        Column("Calls", right=True),
        Column("Sessions", right=True),
        Column("Failed", right=True),
    )
    show.section(out, "Tools", columns, used)
    most = max((found.count for found in result.common), default=1)
    common = [
        [
            show.tools(found.tools),
            f"{cells.count(found.count)} {bar(found.count / most):<10}",
            cells.count(found.sessions),
            show.share(found.support),
        ]
        for found in result.common
    ]
    columns = (
        Column("Tools", flexible=True),
        Column("Count"),
        Column("Sessions", right=True),
        Column("Support", right=True),
    )
    show.section(out, "Most common", columns, common)
    before = (
        ("error_follows", "Before errors outside tools", result.before_errors),
        ("call_fails", "Before a call that fails", result.before_errors),
        ("success", "In sessions that succeed", result.before_success),
        ("failure", "In sessions that fail", result.before_failure),
    )
    told = 0
    for effect, title, effects in before:
        # What makes a success rarer makes a failure likelier, and is shown there.
        rows = [
            show.effect(found)
            for found in effects
            if found.sure and found.effect == effect and (effect in _EFFECT_NAMES or _rises(found))
        ]
        told += len(rows)
        first = "After" if effect in _EFFECT_NAMES else "With"
        show.section(out, title, (Column(first, flexible=True), *show.EFFECTS[1:]), rows)
    if not told:
        out.line("")
        out.line("No sequence goes with errors, success or failure that can be told from chance.")
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
    show.section(out, "The same call again and again", columns, loops)


def _rises(effect: SequenceEffect) -> bool:
    return effect.effect_count * effect.base_count > effect.base_effect_count * effect.count
