"""A calm tenant beside a bad neighbour: how much slower is its recall?"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import grpc
from mneme import MnemeClient
from mneme.messages import RecallRequest

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import percentile
from benchmarks.report import Row, at_most, both, milliseconds
from benchmarks.server import ROOT, Server
from benchmarks.texts import events

RATIO = 5.0
_A_SECOND = 5
_MEMORIES = 2_000
_PATIENCE_S = 20.0
_THREADS = 8
_FLOODS = {
    f"{_THREADS} threads, 1,000 events a call": ("records",),
    f"{_THREADS} threads, questions of 500 words": ("questions",),
    f"{_THREADS} threads of each": ("records", "questions"),
}


@dataclass
class _Window:
    """The times of one window's calls, in seconds, and how many calls were refused."""

    times_s: list[float] = field(default_factory=list)
    refused: int = 0

    def ms(self, q: float) -> float:
        return percentile(self.times_s, q) * 1000


def run(context: Context) -> list[Row]:
    """Ask at an even pace, by turns alone and beside each flood."""
    with Server(context.work / "neighbours") as server:
        calm = server.tenant("calm")
        made = list(events(min(_MEMORIES, context.sizes.memories), seed=40))
        for batch in memories.batches(made, 500):
            calm.record_events(batch)
        memories.wait_until_embedded(calm, lambda _: None)
        _ask(context, calm)  # Warms up.
        return [_row(context, server, calm, name, kinds) for name, kinds in _FLOODS.items()]


def _row(
    context: Context, server: Server, calm: MnemeClient, name: str, kinds: tuple[str, ...]
) -> Row:
    context.say(f"neighbours: {name}")
    alone: list[_Window] = []
    beside: list[_Window] = []
    for _ in range(context.sizes.rounds):
        alone.append(_ask(context, calm))
        with _flood(server, kinds):
            beside.append(_ask(context, calm))
    p50, p95 = (statistics.median(w.ms(q) for w in alone) for q in (50, 95))
    beside50, beside95 = (statistics.median(w.ms(q) for w in beside) for q in (50, 95))
    refused = sum(window.refused for window in beside)
    load = os.getloadavg()[0]
    return Row(
        f"Recall of a calm tenant beside a neighbour's flood: {name}",
        f"p95 ≤ {RATIO:.0f} times that alone, none refused",
        f"{beside95 / p95:.1f} times: p95 {milliseconds(beside95)}, alone {milliseconds(p95)};"
        f" p50 {milliseconds(beside50)}, alone {milliseconds(p50)}; {refused} refused",
        both(at_most(beside95 / p95, RATIO), at_most(refused, 0)),
        f"{context.sizes.rounds} windows each, by turns, of {len(alone[0].times_s)} calls, "
        f"{_A_SECOND} a second; the flood from a process of its own; load average {load:.1f}",
        {
            "ratio_p95": beside95 / p95,
            "ratio_p50": beside50 / p50,
            "p95_ms": beside95,
            "p95_ms_alone": p95,
            "p50_ms": beside50,
            "p50_ms_alone": p50,
            "refused": refused,
            "load": load,
        },
    )


def _ask(context: Context, client: MnemeClient) -> _Window:
    """Ask new questions at an even pace, however long each takes."""
    window = _Window()
    next_s = time.perf_counter()
    for question in context.fresh_questions(max(10, context.sizes.calls // 8)):
        time.sleep(max(0.0, next_s - time.perf_counter()))
        next_s = max(next_s, time.perf_counter()) + 1 / _A_SECOND
        before = time.perf_counter()
        try:
            client.raw.recall.Recall(
                RecallRequest(query=question), metadata=client.metadata, timeout=_PATIENCE_S
            )
        except grpc.RpcError:
            window.refused += 1
        window.times_s.append(time.perf_counter() - before)
    return window


@contextmanager
def _flood(server: Server, kinds: tuple[str, ...]) -> Iterator[None]:
    """Flood from a tenant that is gone afterwards, with all that waits to be embedded for it."""
    tenant_id = f"flood-{time.monotonic_ns()}"
    admin = server.admin()
    admin.create_tenant(tenant_id)
    secret = admin.create_api_key(tenant_id, "flood").secret
    with ExitStack() as stack:
        floods = [stack.enter_context(_process(server.address, kind, secret)) for kind in kinds]
        for flood in floods:
            assert flood.stdout is not None
            if not flood.stdout.readline():
                raise AssertionError("the flood did not begin")
        time.sleep(1.0)  # Until its first calls are at work.
        yield
        for flood in floods:
            flood.kill()
    admin.delete_tenant(tenant_id)


@contextmanager
def _process(address: str, kind: str, secret: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.flood", address, kind, str(_THREADS)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(secret + "\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()
