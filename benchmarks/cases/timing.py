"""A row of calls one after the other, held against a p95."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.context import Context
from benchmarks.report import Row, in_time, milliseconds


def timed(
    context: Context,
    what: str,
    budget_ms: float,
    call: Callable[[Any], object],
    inputs: Callable[[], Iterable[Any]],
    note: str = "",
) -> Row:
    """Measure in rounds, each with new `inputs()`, after one call to warm up."""
    first = next(iter(inputs()))
    measured = context.rounds(call, inputs, warm_up=[first])
    return Row(
        what,
        f"p95 ≤ {budget_ms:,.0f} ms",
        f"p50 {milliseconds(measured.p50_ms)}, p95 {milliseconds(measured.p95_ms)}",
        in_time(measured.p95_ms, budget_ms),
        note,
        measured.figures(),
    )
