"""Figures of an analysis as a table's cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli.output import Column, Output

if TYPE_CHECKING:
    from mneme.types import Interval, OutcomeSplit, SequenceEffect

EFFECTS = (
    Column("After", flexible=True),
    Column("Seen", right=True),
    Column("Elsewhere", right=True),
    Column("Ratio (95 %)", right=True),
    Column("q", right=True),
)


def lifted(lift: float, interval: Interval) -> str:
    """A ratio with its interval, "2.3× (1.4–3.8)"."""
    return f"{_ratio(lift)}× ({_ratio(interval.low)}–{_ratio(interval.high)})"


def _ratio(value: float) -> str:
    return (
        f"{value:,.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 0.095 else f"{value:.2f}"
    )


def share(value: float) -> str:
    """A share, "4.2 %"; only none is "0 %", and only all "100 %"."""
    if value >= 0.0995 or not value:
        return f"{min(round(100 * value), 99) if value < 1 else 100} %"
    return f"{100 * value:.1f} %" if value >= 0.0005 else "<0.1 %"


def q(value: float, *, tested: bool = True) -> str:
    """A q-value; a dash where nothing was tested."""
    if not tested:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def tools(names: Iterable[str]) -> str:
    """A sequence of tools."""
    return cells.preview(" → ".join(name or "(unnamed)" for name in names))


def section(out: Output, title: str, columns: Sequence[Column], rows: list[list[str]]) -> None:
    """Write a table with its title, if it has rows."""
    if rows:
        out.line("")
        out.line(title)
        out.table(columns, rows)


def some_of(part: int, whole: int) -> str:
    """A share with its counts, "11 of 86, 13 %"."""
    return f"{cells.count(part)} of {cells.count(whole)}, {share(part / whole if whole else 0.0)}"


def effect(found: SequenceEffect, *before: str) -> list[str]:
    """A row of `EFFECTS`. Where a rate is 0 there is no ratio, and where nothing is sure none that
    should be quoted."""
    has_ratio = found.sure and "lift_interval" in found
    return [
        *before,
        tools(found.tools),
        some_of(found.effect_count, found.count),
        some_of(found.base_effect_count, found.base_count),
        lifted(found.lift, found.lift_interval) if has_ratio else "",
        q(found.q_value, tested=found.tested),
    ]


def succeeded(split: OutcomeSplit) -> list[str]:
    """How some sessions ended, how the others did, and whether that is told from chance."""
    return [
        some_of(split.successes, split.sessions),
        some_of(split.other_successes, split.other_sessions),
        q(split.q_value, tested=split.tested),
    ]
