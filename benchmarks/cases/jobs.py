"""Recall while a worker process is busy: what heavy work takes from the calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mneme import MnemeClient
from mneme.messages import RecallRequest
from mneme_server.common.progress import Cancelled
from mneme_server.engine.background.jobs import InWorker, Jobs
from mneme_server.engine.scheduling.foreground import Foreground

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.report import Row, at_most, milliseconds
from benchmarks.server import Server
from benchmarks.texts import events

RATIO = 2.0
_MEMORIES = 10_000
_BUSY_S = 60.0
_MEMORY_BYTES = 1024**3


def run(context: Context) -> list[Row]:
    """Ask by turns alone and beside a worker process that computes without a pause."""
    with Server(context.work / "jobs") as server:
        client = server.tenant("jobs")
        made = list(events(min(_MEMORIES, context.sizes.memories), seed=41))
        for batch in memories.batches(made, 500):
            client.record_events(batch)
        memories.wait_until_embedded(client, lambda _: None)
        _ask(context, client)  # Warms up.
        alone: list[Round] = []
        beside: list[Round] = []
        for number in range(context.sizes.rounds):
            context.say(f"jobs: round {number + 1}")
            alone.append(_ask(context, client))
            with _busy():
                beside.append(_ask(context, client))
    quiet, busy = Rounds(alone), Rounds(beside)
    p50, p95, busy50, busy95 = quiet.p50_ms, quiet.p95_ms, busy.p50_ms, busy.p95_ms
    return [
        Row(
            "Recall beside a worker process that computes without a pause",
            f"p95 ≤ {RATIO:.0f} times that alone",
            f"{busy95 / p95:.1f} times: p95 {milliseconds(busy95)}, alone {milliseconds(p95)};"
            f" p50 {milliseconds(busy50)}, alone {milliseconds(p50)}",
            at_most(busy95 / p95, RATIO),
            f"{len(made):,} memories; {context.sizes.rounds} rounds each, by turns, of"
            f" {len(alone[0].times_s)} new questions, one after another; load average"
            f" {os.getloadavg()[0]:.1f}",
            {
                "ratio_p95": busy95 / p95,
                "p95_ms": busy95,
                "p95_ms_alone": p95,
                "p50_ms": busy50,
                "p50_ms_alone": p50,
            },
        )
    ]


def _ask(context: Context, client: MnemeClient) -> Round:
    def recall(question: str) -> object:
        return client.raw.recall.Recall(RecallRequest(query=question), metadata=client.metadata)

    return time_calls(recall, context.fresh_questions(context.sizes.calls))


@contextmanager
def _busy() -> Iterator[None]:
    """Keep a worker process busy for the block, as the server starts them, whatever starts it."""
    began = threading.Event()
    jobs = Jobs(Foreground().give_way, threads=1, processes=1, memory_bytes=_MEMORY_BYTES)
    job = jobs.submit(
        "busy",
        InWorker("benchmarks.busy:compute", {"seconds": _BUSY_S}),
        on_progress=lambda _progress: began.set(),
    )
    if not began.wait(_BUSY_S):
        raise AssertionError("the worker process did not begin")
    try:
        yield
        if job.wait(0):
            raise AssertionError("the worker process ended before the questions did")
    finally:
        jobs.close()
        with suppress(Cancelled):
            job.result()
