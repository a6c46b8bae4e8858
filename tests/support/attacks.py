"""A server under attack: what its other callers notice of it, and what it costs in memory.

An attack is a function that goes on until it is told to stop; `Siege.under` runs it in threads of
this process while a tenant, the victim, calls at a steady pace over every surface that the server
has. `Outcome.check` says what must be true whatever the attack was.
"""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx2
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb

from support.making import event, record
from support.server import ServerProcess

MOST_ABOVE_IDLE_BYTES = 600_000_000
"""What an attack may cost the server in memory."""
MOST_GROWTH = 1.1
"""What twice the time may make of the memory that an attack costs."""
MOST_SLOWER = 5.0
"""What an attack may make of the 95th percentile of other callers' times. They are no tests'."""
OK = "OK"

Attack = Callable[[threading.Event], object]
"""Attacks until the event is set, and lets go of its connections then."""

_PAUSE_S = 0.2
_CALL_S = 30.0
_SAMPLED_EVERY_S = 0.05
_JOIN_S = 60.0
_PAGE = 1_000


@dataclass
class Outcome:
    """What was seen in one phase.

    Attributes:
        calls: the victim's, by surface and status: ("http", "200") or ("grpc", "OK").
        seconds: how long its calls took, each.
        idle_bytes: the server's memory before anybody attacked it.
        first_bytes: the most in the first half of the time.
        peak_bytes: the most in all of it.
        lost: what the victim wrote, was told is kept, and does not find again.
    """

    idle_bytes: int
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    first_bytes: int = 0
    peak_bytes: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def p95_s(self) -> float:
        """The time within which 95 of a hundred calls were answered."""
        ordered = sorted(self.seconds)
        return ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else 0.0

    @property
    def failed(self) -> dict[tuple[str, str], int]:
        """The calls that were not answered as they should be, by surface and status."""
        return {call: count for call, count in self.calls.items() if call[1] != OK}

    def check(self) -> None:
        """Demand what must be true of every attack.

        Raises:
            AssertionError: it is not.
        """
        assert self.calls.total(), "the victim never called"
        assert not self.failed, f"of {self.calls.total()} calls: {self.failed}"
        assert self.peak_bytes - self.idle_bytes <= MOST_ABOVE_IDLE_BYTES, self
        assert self.peak_bytes <= MOST_GROWTH * self.first_bytes, self
        assert not self.lost

    def __str__(self) -> str:
        mb = 1_000_000
        return (
            f"{self.calls.total()} calls, {sum(self.failed.values())} failed, p95"
            f" {self.p95_s * 1_000:.0f} ms; memory {self.idle_bytes // mb} MB idle,"
            f" {self.first_bytes // mb} MB after half the time, {self.peak_bytes // mb} MB at most"
        )


class Siege:
    """A server, and a tenant that uses it.

    Args:
        server: in a process of its own. What it serves over HTTP is called, too.
        warm_s: how long the tenant calls before the server's memory counts as idle.
    """

    def __init__(self, server: ServerProcess, *, warm_s: float = 2.0) -> None:
        self.server = server
        self._api = server.keys.tenant("victim")
        self._kept: list[str] = []
        self.idle_bytes = 0
        self.calm(warm_s)
        self.idle_bytes = resident_bytes(server.process.pid)

    def calm(self, seconds: float) -> Outcome:
        """Return how the tenant fares while nobody attacks."""
        return self.under((), seconds)

    def under(self, attacks: Sequence[Attack], seconds: float) -> Outcome:
        """Return how the tenant fares while it is attacked for so long.

        Raises:
            BaseException: an attack failed: what it raised.
        """
        outcome = Outcome(self.idle_bytes)
        over = threading.Event()
        broken: list[BaseException] = []
        victims = [_Surface("grpc", self._grpc_call(), outcome, over)]
        if self.server.http_address:
            victims.append(_Surface("http", self._http_call(), outcome, over))
        threads = [*victims, *(_attacker(attack, over, broken) for attack in attacks)]
        for thread in threads:
            thread.start()
        self._measure(outcome, seconds, broken)
        over.set()
        for thread in threads:
            thread.join(_JOIN_S)
            assert not thread.is_alive(), f"{thread.name} does not end"
        if broken:
            raise broken[0]
        outcome.lost = self._lost()
        return outcome

    def _measure(self, outcome: Outcome, seconds: float, broken: list[BaseException]) -> None:
        began = time.monotonic()
        while not broken and (gone := time.monotonic() - began) < seconds:
            now = resident_bytes(self.server.process.pid)
            outcome.peak_bytes = max(outcome.peak_bytes, now)
            if gone < seconds / 2:
                outcome.first_bytes = outcome.peak_bytes
            time.sleep(_SAMPLED_EVERY_S)

    def _grpc_call(self) -> Iterator[Callable[[], str]]:
        """Yield what the tenant does over gRPC, each time one thing."""
        api = self._api

        def write() -> str:
            one = f"event-{next(_numbers)}"
            record(api, event(f"the tide turns at {one}", id=one))
            self._kept.append(one)
            return OK

        def read() -> str:
            api.recall.Recall(recall_pb.RecallRequest(query="when does the tide turn?"))
            return OK

        return itertools.cycle((_status_of(write), _status_of(read)))

    def _http_call(self) -> Iterator[Callable[[], str]]:
        """Yield what the tenant does over HTTP, each time one thing, on a connection of its own."""
        head = {"authorization": f"Bearer {self._api.secret}"}
        address = self.server.http_address

        def write() -> str:
            one = f"lesson-{next(_numbers)}"
            body = {"lessonId": one, "title": one, "content": f"the tide turns at {one}"}
            answer = httpx2.post(f"{address}/api/lessons", json=body, headers=head, timeout=_CALL_S)
            if answer.is_success:
                self._kept.append(answer.json()["id"])
            return OK if answer.is_success else str(answer.status_code)

        def read() -> str:
            query = "?query=when+does+the+tide+turn"
            answer = httpx2.get(f"{address}/api/recall{query}", headers=head, timeout=_CALL_S)
            return OK if answer.is_success else str(answer.status_code)

        return itertools.cycle((_named(write), _named(read)))

    def _lost(self) -> list[str]:
        """Return what was acknowledged and is not there."""
        events = events_pb.ListEventsRequest(page_size=_PAGE)
        lessons = learn_pb.ListLessonsRequest(page_size=_PAGE)
        found = {one.id for one in _paged(self._api.events.ListEvents, events, "events")}
        found |= {one.id for one in _paged(self._api.learn.ListLessons, lessons, "lessons")}
        return [one for one in self._kept if one not in found]


class _Surface(threading.Thread):
    """The victim's calls over one surface."""

    def __init__(
        self,
        name: str,
        calls: Iterator[Callable[[], str]],
        outcome: Outcome,
        over: threading.Event,
    ) -> None:
        super().__init__(name=f"victim-{name}", daemon=True)
        self._calls = calls
        self._outcome = outcome
        self._over = over

    def run(self) -> None:
        """Call until it is over."""
        for call in self._calls:
            began = time.monotonic()
            status = call()
            self._outcome.seconds.append(time.monotonic() - began)
            self._outcome.calls[self.name.removeprefix("victim-"), status] += 1
            if self._over.wait(_PAUSE_S):
                return


_numbers = itertools.count(1)


def resident_bytes(pid: int) -> int:
    """Return the memory of a process, as /proc has it."""
    status = Path("/proc", str(pid), "status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None, f"process {pid} has ended"
    return int(found[1]) * 1024


@contextmanager
def besieged(data_dir: Path, **changed: str | int | float) -> Iterator[Siege]:
    """Run a server over gRPC and HTTP, in a process of its own, and a tenant that uses it."""
    server = ServerProcess(data_dir, **{"http_listen": "127.0.0.1:0", **changed})
    try:
        yield Siege(server)
    finally:
        if server.process.poll() is None:
            server.stop()


def _attacker(
    attack: Attack, over: threading.Event, broken: list[BaseException]
) -> threading.Thread:
    def run() -> None:
        try:
            attack(over)
        except BaseException as error:
            broken.append(error)

    return threading.Thread(target=run, name="attacker", daemon=True)


def _status_of(call: Callable[[], str]) -> Callable[[], str]:
    """Return a call over gRPC that returns its status."""

    def status() -> str:
        try:
            return call()
        except grpc.RpcError as error:
            return str(error.code().name)

    return status


def _named(call: Callable[[], str]) -> Callable[[], str]:
    """Return a call over HTTP that returns what went wrong by its name."""

    def status() -> str:
        try:
            return call()
        except httpx2.HTTPError as error:
            return type(error).__name__

    return status


def _paged(call: Callable[[Any], Any], request: Any, items: str) -> Iterator[Any]:
    while True:
        page = call(request)
        yield from getattr(page, items)
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
