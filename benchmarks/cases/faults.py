"""Faults in an index beside watches and load: how soon is all that was acknowledged found again?"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import grpc
from mneme import MnemeClient
from mneme.messages import NewEvent, RecallRequest, RecordEventsRequest, WatchEventsRequest
from mneme.v1.recall_service_pb2 import RECALL_MODE_LEXICAL

from benchmarks import faulty, memories
from benchmarks.context import Context
from benchmarks.report import Row, at_most
from benchmarks.server import Server
from benchmarks.texts import events

FEW, FEW_S, MANY_S = 10_000, 1.0, 15.0
_WATCHES = 3
_OLD = 3
"""Memories of long ago that are looked for, beside the newest."""
_SETTLED_S = 1.0
_ROUNDS = 3
_LIMIT_S = 120.0


def run(context: Context) -> list[Row]:
    """Inject each fault in turns, with few memories; then damage segments with many."""
    few = memories.ensure(context.cache, min(FEW, context.sizes.memories), context.say)
    rows = []
    for copies in (False, True):
        faults = faulty.FAULTS if not copies else (faulty.ADD_AGAIN, faulty.SEGMENT)
        rows += _with(context, few, copies, faults, FEW_S)
        if context.sizes.memories > FEW:
            rows += _with(context, context.memories, copies, (faulty.SEGMENT,), MANY_S)
    return rows


def _with(
    context: Context, stored: memories.Memories, copies: bool, faults: tuple[str, ...], limit: float
) -> list[Row]:
    kind = "with copies" if copies else "without copies"
    rows = []
    for fault in faults:
        found = []
        for number in range(min(_ROUNDS, context.sizes.rounds)):
            context.say(f"faults: {stored.count:,}, {kind}, {number + 1}: {fault}")
            found.append(_once(context, stored, copies, fault))
        rows.append(_row(stored, kind, fault, found, limit))
    return rows


def _once(context: Context, stored: memories.Memories, copies: bool, fault: str) -> _Found:
    """Inject a fault into a server of its own: whoever fails often is built again later."""
    with tempfile.TemporaryDirectory(dir=context.work) as work, tempfile.TemporaryDirectory() as at:
        data = memories.copy(stored, Path(work) / "data")
        if copies:
            with Server(data) as server:  # It may know better ones than what made these.
                _until_whole(server.tenant(memories.TENANT, create=False))
        else:
            shutil.rmtree(data / "tenants" / memories.TENANT / "index")
        socket = str(Path(at) / "faults")  # The name of a socket must be short.
        with Server(data, module="benchmarks.faulty", variables={faulty.SOCKET: socket}) as server:
            client = server.tenant(memories.TENANT, create=False)
            _until_whole(client)
            with _loaded(client) as load, Client(socket, "AF_UNIX") as inject:
                time.sleep(_SETTLED_S)
                inject.send(fault)
                return _found(client, load, inject)


def _until_whole(client: MnemeClient) -> None:
    """Wait until the tenant is open and its indexes are whole."""
    until = time.monotonic() + _LIMIT_S
    request = RecallRequest(query="warm up")
    while client.raw.recall.Recall(request, metadata=client.metadata).partial:
        if time.monotonic() > until:
            raise AssertionError("the indexes do not become whole")
        time.sleep(0.1)


@dataclass
class _Found:
    """Seconds from a fault until the first answer, and until all that there is was found."""

    first_s: float
    whole_s: float
    partial: bool


def _row(
    stored: memories.Memories, kind: str, fault: str, found: list[_Found], limit: float
) -> Row:
    whole, first = [f.whole_s for f in found], max(f.first_s for f in found)
    return Row(
        f"{fault[0].upper()}{fault[1:]}, {stored.count:,} memories, {kind} of the index on the"
        " disk",
        f"all found within {limit:.0f} s",
        f"{statistics.median(whole):.2f} s, at worst {max(whole):.2f} s; the first answer after"
        f" {first:.2f} s at worst",
        at_most(max(whole), limit),
        f"{_WATCHES} watches, and events that are recorded one after another; {len(found)} rounds"
        + ("; answers were marked as partial meanwhile" if any(f.partial for f in found) else ""),
        {"median_s": statistics.median(whole), "worst_s": max(whole), "first_answer_s": first},
    )


@dataclass
class _Load:
    """What was acknowledged, in order: the id and the one word that is its own."""

    client: MnemeClient
    acknowledged: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def record(self) -> None:
        number = 0
        record, metadata = self.client.raw.event.RecordEvents, self.client.metadata
        while not self.stop.is_set():
            number += 1
            name = f"heron{number}"
            event = NewEvent(id=name, session_id="heron", event_type="message",
                             text=f"{name} stood in the reeds")  # fmt: skip
            record(RecordEventsRequest(events=[event]), metadata=metadata)
            self.acknowledged.append(name)

    def watch(self, watch: Any) -> None:
        with suppress(grpc.RpcError):
            for _ in watch:
                pass


@contextmanager
def _loaded(client: MnemeClient) -> Iterator[_Load]:
    load = _Load(client)
    watches = [
        client.raw.event.WatchEvents(WatchEventsRequest(), metadata=client.metadata)
        for _ in range(_WATCHES)
    ]
    threads = [threading.Thread(target=load.watch, args=(watch,)) for watch in watches]
    threads.append(threading.Thread(target=load.record))
    for thread in threads:
        thread.start()
    try:
        while len(load.acknowledged) < _OLD:
            time.sleep(0.01)
        yield load
    finally:
        load.stop.set()
        threads[-1].join()
        for watch in watches:
            watch.cancel()
        for thread in threads:
            thread.join()


def _found(client: MnemeClient, load: _Load, inject: Any) -> _Found:
    """Ask until everything that was acknowledged is found: the oldest, those about the fault, and
    the newest."""
    old = list(events(_OLD))
    met, first_s, partial = 0.0, 0.0, False
    at = len(load.acknowledged)
    until = time.monotonic() + _LIMIT_S
    while time.monotonic() < until:
        about = load.acknowledged[max(0, at - _OLD) :]
        names = [*about[: 2 * _OLD], about[-1]]
        asked = [(f"e{made.session}-{made.place}", made.text) for made in old]
        asked += [(name, name) for name in names]
        whole = True
        for wanted, text in asked:
            request = RecallRequest(query=text, mode=RECALL_MODE_LEXICAL)
            answer = client.raw.recall.Recall(request, metadata=client.metadata)
            if not met and inject.poll(0):
                met = inject.recv()
                at = len(load.acknowledged)
                first_s = time.monotonic() - met
            partial = partial or answer.partial
            if answer.partial or wanted not in [result.source_id for result in answer.results]:
                whole = False
                break
        if met and whole and len(load.acknowledged) >= at + 2 * _OLD:
            return _Found(first_s, time.monotonic() - met, partial)
    raise AssertionError("not everything that was acknowledged is found")
