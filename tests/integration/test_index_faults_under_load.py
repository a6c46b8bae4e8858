"""Faults in an index while others watch and record: nothing is lost, and nothing closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.engine.index.tenant_index import TenantIndex
from structlog.testing import capture_logs
from support.api import Api, grpc
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE


class Killed(BaseException):
    """What ends a thread between a commit and what follows it."""


@dataclass
class Load:
    """Somebody who records one event after another, and three who watch."""

    api: Api
    acknowledged: list[str] = field(default_factory=list)
    committed: int = 0
    seen: list[list[str]] = field(default_factory=lambda: [[], [], []])

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._watches = [
            self.api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=300)
            for _ in self.seen
        ]
        for watch in self._watches:
            next(watch)  # It has begun.
        self._threads = [
            threading.Thread(target=self._watch, args=pair)
            for pair in zip(self._watches, self.seen, strict=True)
        ]
        self._threads.append(threading.Thread(target=self._record))
        for thread in self._threads:
            thread.start()

    def _record(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            name = f"heron{number}"
            self.committed += 1
            try:
                record(self.api, event(f"{name} stood in the reeds", id=name))
            except grpc.RpcError:  # Killed behind its commit.
                continue
            self.acknowledged.append(name)

    def _watch(self, watch: Any, seen: list[str]) -> None:
        with suppress(grpc.RpcError):
            seen.extend(message.event.id for message in watch if message.HasField("event"))

    def more(self, count: int = 20) -> None:
        """Wait for some more acknowledgements."""
        wanted = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= wanted)

    def finish(self) -> None:
        self._stop.set()
        self._threads[-1].join()
        until(lambda: all(len(seen) >= self.committed for seen in self.seen))
        self.close()

    def close(self) -> None:
        self._stop.set()
        for watch in self._watches:
            watch.cancel()
        for thread in self._threads:
            thread.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come about within a minute"
        time.sleep(0.01)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def load(server: LocalServer) -> Iterator[Load]:
    api = server.keys.tenant()
    record(api, event("the first", id="first"), wait=True)
    load = Load(api)
    yield load
    load.close()


def failing(owner: type, name: str, error: BaseException, times: int = 1) -> Any:
    """Have the first calls of a method fail."""
    real, left = getattr(owner, name), [error] * times

    def behave(self: Any, *args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return real(self, *args, **kwargs)

    return mock.patch.object(owner, name, behave)


def damage_a_segment(server: LocalServer, api: Api) -> None:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant:
        index = tenant.index
        assert isinstance(index, TenantIndex)
        words = index._lexical
        words.commit()
        for file in [*words._folder.glob("*.idx"), *words._folder.glob("*.term")]:
            with file.open("r+b") as mapped:  # To cut a mapped file off ends the process.
                turned = bytes(byte ^ 0xFF for byte in mapped.read())
                mapped.seek(0)
                mapped.write(turned)
        index.missed(RuntimeError("a segment is damaged"))


FAULTS: dict[str, list[Callable[[], AbstractContextManager[Any]]]] = {
    "a failing add": [lambda: failing(TenantIndex, "add_documents", OSError("no space"))],
    "an add that fails again": [
        lambda: failing(TenantIndex, "add_documents", OSError("no space")),
        lambda: failing(TenantIndex, "read_again", OSError("no space")),
    ],
    "a kill between commit and apply": [lambda: failing(LiveIndex, "apply", Killed())],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_acknowledged_is_found_whatever_an_apply_met(
    server: LocalServer, load: Load, fault: str
) -> None:
    tenants = server.application.runtime.tenants
    with tenants.open(load.api.tenant_id) as before:
        pass
    load.more()
    with ExitStack() as faulty:
        faulty.enter_context(capture_logs())  # A thread that is killed is no bug.
        for inject in FAULTS[fault]:
            faulty.enter_context(inject())
        load.more()
    load.more()
    load.finish()
    _check(load)
    with tenants.open(load.api.tenant_id) as after:
        assert after is before, "nothing was closed"


def test_a_damaged_segment_is_replaced_while_others_write_and_watch(
    server: LocalServer, load: Load
) -> None:
    load.more()
    damage_a_segment(server, load.api)
    load.more()
    load.finish()
    _check(load)


def _check(load: Load) -> None:
    """Every acknowledged event is found, by a reader who waits for nothing, and was watched."""
    until(lambda: not recall(load.api, "heron1", mode=LEXICAL).partial)
    for name in load.acknowledged:
        assert ids_of(recall(load.api, name, mode=LEXICAL))[:1] == [name]
    for seen in load.seen:
        assert set(load.acknowledged) <= set(seen)
