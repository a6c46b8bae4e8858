"""The threads that serve calls are shared fairly between tenants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2 as pb
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.workers import Lane, Workers
from support.folders import wait_until
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Client, Edge, Refusal

GET = "EventService/GetSession"
LIST = "EventService/ListAgents"
REQUEST = pb.GetSessionRequest(session_id="s")
WAIT_S = 20


class Held:
    """Workers whose calls stay until they are let go; `begun` are those that a thread serves."""

    def __init__(self, threads: int, places: int = 100) -> None:
        self.workers = Workers(threads, places)
        self.begun: list[str] = []
        self._changed = threading.Condition()
        self._may_end: dict[str, int] = {}

    def submit(self, tenant: str, *, streams: bool = False) -> Future[Any]:
        self.workers.next_is(Lane(tenant, streams))
        return self.workers.submit(self._call, tenant)

    def _call(self, tenant: str) -> None:
        with self._changed:
            self.begun.append(tenant)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._may_end.get(tenant, 0) > 0, WAIT_S)
            self._may_end[tenant] -= 1

    def let_go(self, tenant: str, calls: int = 1) -> None:
        with self._changed:
            self._may_end[tenant] = self._may_end.get(tenant, 0) + calls
            self._changed.notify_all()

    def wait_begun(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, WAIT_S)
            return list(self.begun)


@contextmanager
def held(threads: int, places: int = 100) -> Iterator[Held]:
    one = Held(threads, places)
    yield one
    for tenant in ("busy", "other", "calm"):
        one.let_go(tenant, 10_000)
    one.workers.shutdown()


def test_a_tenant_gets_as_many_threads_as_it_leaves_free() -> None:
    with held(8) as calls:
        for _ in range(20):
            calls.submit("busy")
        assert calls.wait_begun(4) == ["busy"] * 4
        calls.submit("calm")
        assert calls.wait_begun(5) == ["busy"] * 4 + ["calm"]


def test_two_busy_tenants_leave_room_for_a_third() -> None:
    with held(9) as calls:
        for _ in range(20):
            calls.submit("busy")
            calls.submit("other")
        calls.wait_begun(6)
        calls.submit("calm")
        # How many of theirs have begun by now depends on whose came first; none of them ends.
        wait_until(lambda: "calm" in calls.begun, "the third tenant's call begins")


def test_calls_of_a_new_key_that_come_at_once_get_no_more_than_their_tenants_share() -> None:
    known = dict[str, str]()

    def call() -> None:
        known["key"] = "busy"
        calls.workers.is_of("busy")
        calls._call("busy")

    with held(8) as calls:
        calls.submit("blocking", streams=True)
        for _ in range(20):
            calls.workers.next_is(Lane("?"), lambda: known.get("key", ""))
            calls.workers.submit(call)
        calls.wait_begun(5)
        calls.submit("calm")
        wait_until(lambda: "calm" in calls.begun, "another tenant's call begins")
        assert calls.begun.count("busy") <= 5
        calls.let_go("blocking")


def test_streams_are_limited_by_their_seats_and_not_by_threads() -> None:
    with held(4) as calls:
        for _ in range(4):
            calls.submit("busy", streams=True)
        assert len(calls.wait_begun(4)) == 4


def test_a_thread_that_becomes_free_goes_to_who_waits_in_turn() -> None:
    with held(1) as calls:
        for tenant in ("busy", "busy", "busy", "calm"):
            calls.submit(tenant)
        calls.wait_begun(1)
        for number in range(2, 5):
            calls.let_go("busy")
            calls.let_go("calm")
            calls.wait_begun(number)
        assert calls.begun.index("calm") <= 2


def test_who_has_no_room_left_is_told_and_others_have_some() -> None:
    with held(1, places=10) as calls:
        calls.submit("busy")
        calls.wait_begun(1)
        admitted = 0
        while calls.workers.next_is(Lane("busy")):
            calls.submit("busy")
            admitted += 1
        assert admitted == 5
        assert calls.workers.next_is(Lane("calm"))


def test_a_call_that_not_one_thread_can_be_had_for_is_refused_and_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with held(threads=2) as calls:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", cannot)
            with pytest.raises(RuntimeError, match="new thread"):
                calls.submit("refused")
        calls.submit("next")
        calls.let_go("refused")
        calls.let_go("next")
        calls.workers.wait_until_all_begun(WAIT_S)
        assert calls.wait_begun(1) == ["next"]


def test_a_call_that_fails_costs_no_thread() -> None:
    workers = Workers(1, 10)

    def fail() -> None:
        raise ValueError("broken")

    for _ in range(3):
        assert isinstance(workers.submit(fail).exception(WAIT_S), ValueError)
    assert workers.submit(lambda: 1).result(WAIT_S) == 1
    workers.shutdown()
    with pytest.raises(RuntimeError):
        workers.submit(lambda: 1)


@settings(max_examples=30, deadline=None)
@given(
    calls=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=60),
    threads=st.integers(1, 5),
)
def test_every_call_is_served_once_and_closing_waits_for_all(
    calls: list[tuple[str, bool]], threads: int
) -> None:
    workers, served = Workers(threads, 1_000), list[int]()
    futures = []
    for number, (tenant, streams) in enumerate(calls):
        workers.next_is(Lane(tenant, streams))
        futures.append(workers.submit(served.append, number))
    workers.wait_until_all_begun(WAIT_S)
    workers.shutdown()
    assert not wait(futures, 0).not_done
    assert sorted(served) == list(range(len(calls)))


# On the wire.


class Flooded:
    """A server with eight workers where one tenant's calls stay, as many as may begin."""

    def __init__(self, make_edge: MakeEdge) -> None:
        self.edge: Edge = make_edge(workers=8, max_streams=1, max_uploads=1)
        self.refusals: list[Refusal] = []
        self.busy: Client = self.edge.client(self.edge.key("busy").secret)
        self.calm: Client = self.edge.client(self.edge.key("calm").secret)
        for client in (self.busy, self.calm):
            client.call(LIST)  # A key is known once it was used.
        self.may_end = threading.Event()
        self._begun = threading.Semaphore(0)
        self.edge.on(GET, self._hold)

    def _hold(self, request: Any, call: Call) -> Any:
        self._begun.release()
        assert self.may_end.wait(WAIT_S)
        return pb.GetSessionResponse()

    def flood(self, calls: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._call, daemon=True) for _ in range(calls)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            assert self._begun.acquire(timeout=WAIT_S)
        return threads

    def _call(self) -> None:
        try:
            self.busy.call(GET, REQUEST)
        except grpc.RpcError as error:
            self.refusals.append(Refusal(error))


def test_a_flood_of_one_tenant_leaves_workers_to_another(make_edge: MakeEdge) -> None:
    flooded = Flooded(make_edge)
    threads = flooded.flood(20)
    for _ in range(5):
        flooded.calm.call(LIST)
    flooded.may_end.set()
    for thread in threads:
        thread.join(WAIT_S)


def test_a_flood_without_a_key_leaves_workers_to_those_who_have_one(make_edge: MakeEdge) -> None:
    flooded = Flooded(make_edge)
    threads = flooded.flood(20)
    stranger = flooded.edge.client("mn_nobody-knows-this-key")
    assert stranger.refusal(LIST).code is grpc.StatusCode.UNAUTHENTICATED
    flooded.calm.call(LIST)
    flooded.may_end.set()
    for thread in threads:
        thread.join(WAIT_S)


def test_who_floods_beyond_its_places_is_refused_and_told_when_to_come_back(
    make_edge: MakeEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme_server.edge.grpc.server._WAITING_PER_WORKER", 1)
    flooded = Flooded(make_edge)
    threads = flooded.flood(30)
    refused = threading.Event()
    while not flooded.refusals:
        refused.wait(0.01)
    flooded.calm.call(LIST)
    flooded.may_end.set()
    for thread in threads:
        thread.join(WAIT_S)
    for refusal in flooded.refusals:
        assert (refusal.code, refusal.reason, refusal.has_retry) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "TOO_MANY_CALLS",
            True,
        )
    flooded.busy.call(LIST)


def test_calls_that_come_before_a_woken_thread_runs_wait_for_none() -> None:
    """One idle thread is no thread for two calls, though it counts as idle until it runs."""
    workers = Workers(4, 100)
    lock = threading.RLock()  # For this test to hold while it submits.
    workers._state, workers._all_begun = threading.Condition(lock), threading.Condition(lock)
    ends, begun = threading.Event(), threading.Semaphore(0)

    def call() -> None:
        begun.release()
        assert ends.wait(WAIT_S)

    def submit(tenant: str) -> Future[Any]:
        workers.next_is(Lane(tenant, streams=True))
        return workers.submit(call)

    ends.set()
    wait([submit("a")], WAIT_S)
    assert begun.acquire(timeout=WAIT_S)
    ends.clear()
    while not workers._idle:  # It goes to sleep right after its call.
        pass
    with workers._state:  # Nobody wakes before the second call is there.
        calls = [submit("a"), submit("b")]
    try:
        assert begun.acquire(timeout=WAIT_S / 4)
        assert begun.acquire(timeout=WAIT_S / 4)
    finally:
        ends.set()
    wait(calls, WAIT_S)
    workers.shutdown()
