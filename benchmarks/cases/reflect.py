"""Every analysis of Reflect over a large record."""

from __future__ import annotations

from benchmarks import reflect
from benchmarks.context import FULL, Context
from benchmarks.report import Row, at_most, both, in_time, megabytes

_FULL_EVENTS, _QUICK_EVENTS = 1_000_000, 50_000


def run(context: Context) -> list[Row]:
    """Measure each analysis on a server of its own."""
    count = _FULL_EVENTS if context.sizes == FULL else _QUICK_EVENTS
    context.say(f"reflect: {count:,} events")
    measured, idle_mb = reflect.measure(count, context.work / "reflect")
    return [
        Row(
            what=f"Reflect, {found.analysis}, {count:,} events",
            budget=f"≤ {reflect.SECONDS:.0f} s, ≤ {reflect.MEGABYTES:.0f} MB",
            measured=f"{found.first_s:.1f} s, again {found.again_s:.1f} s;"
            f" peak {megabytes(found.peak_mb * 1e6)}",
            verdict=both(
                in_time(max(found.first_s, found.again_s), reflect.SECONDS),
                at_most(found.peak_mb, reflect.MEGABYTES),
            ),
            how="a fresh server for each; memory is the server's,"
            f" model included ({megabytes(idle_mb * 1e6)} before)",
            figures={
                "first_s": found.first_s,
                "again_s": found.again_s,
                "peak_mb": found.peak_mb,
                "idle_mb": idle_mb,
            },
        )
        for found in measured
    ]
