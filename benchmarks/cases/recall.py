"""Recall over many memories."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Rounds
from benchmarks.report import NO_BUDGET, Row, at_rate, both, in_time, milliseconds
from benchmarks.server import Server

P50_MS, P95_MS, SEARCHES = 5.0, 10.0, 200.0
_REPEATED = 50
_MAY, _JUNE = datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)


def run(context: Context) -> list[Row]:
    """Measure recall alone and at 8 in flight, with new questions and repeated ones."""
    sizes = context.sizes
    data = memories.copy(context.memories, context.work / "recall")
    with Server(data) as server:
        asking = _Asking(context, server)
        asking.measure("warm-up")
        fresh = asking.measure("new questions, alone")
        busy = asking.measure("new questions, 8 in flight", in_flight=8)
        others = (
            ("repeated questions", asking.measure("repeated questions", repeat=True),
             ", embeddings from the cache"),
            ("dense", asking.measure("dense", mode="dense"), ", new questions"),
            ("lexical", asking.measure("lexical", mode="lexical"), ", new questions, no embedding"),
            ("of one month", asking.measure("of one month", narrow=True),
             ", new questions, filtered by time to a twelfth"),
            ("limit 100", asking.measure("limit 100", limit=100), ", new questions"),
        )  # fmt: skip
    size = f"{sizes.memories:,} memories"
    how = f"{sizes.rounds} rounds of {sizes.calls} calls"
    rows = [
        Row(
            f"Recall, {size}, new questions",
            "p50 ≤ 5 ms, p95 ≤ 10 ms",
            _times(fresh),
            both(in_time(fresh.p50_ms, P50_MS), in_time(fresh.p95_ms, P95_MS)),
            f"{how}, one after another, each question embedded; limit 10, hybrid",
            fresh.figures(),
        ),
        Row(
            "Recall, 8 in flight",
            f"≥ {SEARCHES:,.0f}/s",
            f"{busy.per_second:,.0f}/s; {_times(busy)}",
            at_rate(busy.per_second, SEARCHES),
            f"{how}, 8 threads of one client, new questions",
            busy.figures(),
        ),
    ]
    rows += [
        Row(f"Recall, {name}", "", _times(rounds), NO_BUDGET, how + note, rounds.figures())
        for name, rounds, note in others
    ]
    return rows


class _Asking:
    """Asks a server's tenant with many memories."""

    def __init__(self, context: Context, server: Server) -> None:
        self._context = context
        self._client = server.tenant(memories.TENANT, create=False)
        self._cpu_s = server.cpu_s

    def measure(
        self,
        what: str,
        *,
        mode: str = "hybrid",
        limit: int = 10,
        in_flight: int = 1,
        repeat: bool = False,
        narrow: bool = False,
    ) -> Rounds:
        """Ask in rounds: new questions, or those of a small set again and again."""
        context, client = self._context, self._client
        context.say(f"recall: {what}")
        calls = context.sizes.calls
        known = context.fresh_questions(_REPEATED)
        start, end = (_MAY, _JUNE) if narrow else (None, None)

        def ask(question: str) -> None:
            answer = client.recall(question, mode=mode, limit=limit, start_time=start, end_time=end)
            if not answer.results:
                raise AssertionError(f"nothing was recalled for {question!r}")

        def questions() -> list[str]:
            if repeat:
                return random.Random(1).choices(known, k=calls)
            return context.fresh_questions(calls)

        return context.rounds(ask, questions, in_flight=in_flight, warm_up=known, cpu_s=self._cpu_s)


def _times(rounds: Rounds) -> str:
    cpu = "" if rounds.cpu_ms is None else f"; {milliseconds(rounds.cpu_ms)} of processor time"
    return f"p50 {milliseconds(rounds.p50_ms)}, p95 {milliseconds(rounds.p95_ms)}{cpu}"
