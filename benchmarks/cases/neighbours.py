"""A calm tenant beside a bad neighbour: how much slower is its recall?"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

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
    f"{_THREADS} threads, pages of 1,000 events": ("lists",),
    f"{_THREADS} threads, GetContext": ("contexts",),
}
_REINDEXED = 10_000
"""Memories of the tenant whose indexes are built again and again."""


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
        rows = [
            _row(context, calm, name, partial(_flood, server, kinds))
            for name, kinds in _FLOODS.items()
        ]
        with _large_tenant(context, server) as large:
            name = f"the indexes of its {large.memories:,} memories are built again and again"
            return [*rows, _row(context, calm, name, large.reindexed)]


def _row(
    context: Context,
    calm: MnemeClient,
    name: str,
    flood: Callable[[], AbstractContextManager[None]],
) -> Row:
    context.say(f"neighbours: {name}")
    alone: list[_Window] = []
    beside: list[_Window] = []
    for _ in range(context.sizes.rounds):
        alone.append(_ask(context, calm))
        with flood():
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


class _Large:
    """A tenant whose indexes are built again: it is restored from a backup, without its indexes,
    and opened, one time after the other."""

    def __init__(self, server: Server, tenant_id: str, backup: str, memories: int) -> None:
        self._server = server
        self._tenant_id = tenant_id
        self._backup = backup
        self.memories = memories
        self.times = 0

    @contextmanager
    def reindexed(self) -> Iterator[None]:
        """Build them for as long as the block lasts, at least once."""
        over, failures = threading.Event(), list[BaseException]()

        def reindex() -> None:
            admin = self._server.admin()
            try:
                while not over.is_set():
                    admin.restore(self._backup, tenant_id=self._tenant_id).result()
                    admin.get_stats(tenant_id=self._tenant_id)  # Opens it.
                    self.times += 1
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=reindex, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if failures or not self.times:
            raise AssertionError(f"nothing was built again: {failures}")


@contextmanager
def _large_tenant(context: Context, server: Server) -> Iterator[_Large]:
    count = min(_REINDEXED, context.sizes.memories)
    client = server.tenant("large")
    context.say(f"neighbours: recording {count:,} memories, to build their indexes again")
    for batch in memories.batches(list(events(count, seed=44)), 500):
        client.record_events(batch)
    memories.wait_until_embedded(client, lambda _: None)
    backup = Path(server.admin().backup(tenant_id="large").result().path).name
    yield _Large(server, "large", backup, count)


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
    admin.delete_tenant(tenant_id).result()


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
