"""Context and session memory over many sessions."""

from __future__ import annotations

from benchmarks import sessions
from benchmarks.context import FULL, Context
from benchmarks.report import NO_BUDGET, Row, in_time, milliseconds

_FULL_SESSIONS, _QUICK_SESSIONS = 10_000, 500


def run(context: Context) -> list[Row]:
    """Measure each call on a server of its own."""
    count = _FULL_SESSIONS if context.sizes == FULL else _QUICK_SESSIONS
    context.say(f"context: {count:,} sessions; recording and embedding them takes minutes")
    with sessions.server(context.work / "sessions") as client:
        sessions.prepare(client, count)
        figures = sessions.measure(client, context.sizes.calls)
    return [
        Row(
            what=f"{what}, among {count:,} sessions",
            budget=f"p95 ≤ {sessions.BUDGET_MS:.0f} ms" if _has_budget(what) else "",
            measured=f"p50 {milliseconds(found['p50_ms'])}, p95 {milliseconds(found['p95_ms'])}",
            verdict=(
                in_time(found["p95_ms"], sessions.BUDGET_MS) if _has_budget(what) else NO_BUDGET
            ),
            how="each topic is new; every fifth session has a handover",
            figures=found,
        )
        for what, found in figures.items()
    ]


def _has_budget(what: str) -> bool:
    return what.startswith(("GetContext", "WakeUp"))
