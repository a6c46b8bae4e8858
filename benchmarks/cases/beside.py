"""Recall over gRPC beside callers over HTTP: does the other edge slow this one down?"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from mneme import MnemeClient

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import percentile
from benchmarks.report import Row, at_most, milliseconds
from benchmarks.server import ROOT, Server
from benchmarks.texts import events

RATIO = 1.5
_A_SECOND = 50
_IDLE = 1_000
_MEMORIES = 10_000


def run(context: Context) -> list[Row]:
    """Ask at an even pace, by turns beside as many calls over gRPC and beside those over HTTP."""
    with Server(context.work / "beside", {"http_listen": "127.0.0.1:0"}) as server:
        client = server.tenant("calm")
        secret = server.admin().create_api_key("calm", "beside").secret
        made = min(_MEMORIES, context.sizes.memories)
        context.say(f"beside HTTP: recording {made:,} memories")
        for batch in memories.batches(list(events(made, seed=50)), 500):
            client.record_events(batch)
        memories.wait_until_embedded(client, lambda _: None)
        http = urlsplit(server.http_address).netloc
        _ask(context, client)  # Warms up.
        alone: list[Sequence[float]] = []
        beside: list[Sequence[float]] = []
        for number in range(context.sizes.rounds):
            context.say(f"beside HTTP: round {number + 1}")
            with _others("grpc", server.address, 0, secret, seed=2 * number):
                alone.append(_ask(context, client))
            with _others("rest", http, _IDLE, secret, seed=2 * number + 1):
                beside.append(_ask(context, client))
    p50, p95 = _of(alone, 50), _of(alone, 95)
    beside50, beside95 = _of(beside, 50), _of(beside, 95)
    load = os.getloadavg()[0]
    return [
        Row(
            f"Recall over gRPC, {_A_SECOND} a second, beside {_IDLE:,} idle connections and"
            f" {_A_SECOND} REST Recalls a second",
            f"p95 ≤ {RATIO:g} times that of {2 * _A_SECOND} gRPC calls a second alone",
            f"{beside95 / p95:.2f} times: p95 {milliseconds(beside95)}, alone {milliseconds(p95)};"
            f" p50 {milliseconds(beside50)}, alone {milliseconds(p50)}",
            at_most(beside95 / p95, RATIO),
            f"{context.sizes.rounds} windows each, by turns, of {len(alone[0])} new questions among"
            f" {made:,} memories; the others from a process of their own; median over the windows;"
            f" load average {load:.1f}",
            {
                "ratio_p95": beside95 / p95,
                "ratio_p50": beside50 / p50,
                "p95_ms": beside95,
                "p95_ms_alone": p95,
                "p50_ms": beside50,
                "p50_ms_alone": p50,
                "load": load,
            },
        )
    ]


def _ask(context: Context, client: MnemeClient) -> Sequence[float]:
    """Ask new questions at an even pace; return the time of each in seconds."""
    times: list[float] = []
    next_s = time.perf_counter()
    for question in context.fresh_questions(max(_A_SECOND, context.sizes.calls)):
        time.sleep(max(0.0, next_s - time.perf_counter()))
        next_s = max(next_s, time.perf_counter()) + 1 / _A_SECOND
        before = time.perf_counter()
        if not client.recall(question, limit=10).results:
            raise AssertionError(f"nothing was recalled for {question!r}")
        times.append(time.perf_counter() - before)
    return times


def _of(windows: Sequence[Sequence[float]], q: float) -> float:
    return statistics.median(percentile(times, q) for times in windows) * 1000


@contextmanager
def _others(edge: str, address: str, idle: int, secret: str, *, seed: int) -> Iterator[None]:
    """Have others call at the same pace for as long as the block lasts."""
    given = [edge, address, str(_A_SECOND), str(idle), str(9_000 + seed)]
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.steady", *given],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(secret + "\n")
            process.stdin.flush()
            if not process.stdout.readline():
                raise AssertionError("the others did not begin")
            yield
            if process.poll() is not None:
                raise AssertionError("the others ended before the measurement did")
        finally:
            process.kill()
