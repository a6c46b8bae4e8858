from __future__ import annotations

import grpc
from hypothesis import given
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.interceptors.access import TokenBuckets
from mneme_server.edge.grpc.interceptors.streams import StreamSlots
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.grpc.shared_counts import SharedCounts
from unit.edge.grpc.edge import Edge

GET = "EventService/GetSession"
REQUEST = event_service_pb2.GetSessionRequest(session_id="s")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _slots() -> StreamSlots:
    return StreamSlots(dict.fromkeys(StreamKind, 1), Watchdog(), tenant_watches=1)


def test_a_key_beyond_its_limit_is_told_when_to_come_back(edge: Edge) -> None:
    client = edge.client(edge.key(rate_limit=3).secret)
    for _ in range(3):
        client.call(GET, REQUEST)
    refusal = client.refusal(GET, REQUEST)
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "RATE_LIMITED",
    )
    assert 0 < refusal.retry.retry_delay.ToMilliseconds() <= 20_000


def test_the_limit_of_one_key_does_not_touch_another(edge: Edge) -> None:
    limited = edge.client(edge.key(rate_limit=1).secret)
    limited.call(GET, REQUEST)
    assert limited.refusal(GET, REQUEST).reason == "RATE_LIMITED"
    edge.client(edge.key(rate_limit=1).secret).call(GET, REQUEST)
    free = edge.client(edge.key(rate_limit=0).secret)
    for _ in range(5):
        free.call(GET, REQUEST)


def test_waiting_as_long_as_told_is_enough() -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    while not buckets.take("k", 60):
        pass
    wait = buckets.take("k", 60)
    assert 0 < wait <= 1
    clock.now += wait + 1e-6
    assert buckets.take("k", 60) == 0


@given(
    st.integers(1, 300),
    st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=200),
)
def test_no_window_lets_more_through_than_a_full_bucket_and_its_refill(
    per_minute: int, pauses: list[float]
) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    let_through = 0
    for pause in pauses:
        clock.now += pause
        let_through += buckets.take("k", per_minute) == 0
    assert let_through <= per_minute + sum(pauses) * per_minute / 60 + 1


def test_forgetting_idle_keys_does_not_refill_busy_ones() -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    for n in range(9_999):
        buckets.take(f"idle{n}", 1)
    clock.now += 61
    assert buckets.take("busy", 1) == 0
    assert buckets.take("one more", 1) == 0
    assert buckets.take("busy", 1) > 0


class Counting(TokenBuckets):
    """Counts how often it goes through all of its buckets."""

    sweeps = 0

    def _sweep(self, now: float) -> None:
        self.sweeps += 1
        super()._sweep(now)


def test_however_many_keys_are_in_use_few_calls_go_through_all_of_them() -> None:
    clock = Clock()
    buckets = Counting(clock)
    for n in range(50_000):
        assert buckets.take(f"key {n}", 60) == 0
    assert buckets.sweeps <= 3
    clock.now += 61
    for n in range(50_000):
        buckets.take(f"new key {n}", 60)
    assert buckets.sweeps <= 5
    assert len(buckets._buckets) <= 50_000  # Those of the first round are gone.


def test_calls_that_another_server_let_through_are_taken_from_the_bucket() -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    assert buckets.take("k", 60) == 0
    buckets.spent_elsewhere("k", 60, 119)
    wait = buckets.take("k", 60)
    assert 60 < wait <= 61, "what was let through beyond the limit is made up for"
    clock.now += wait + 1e-6
    assert buckets.take("k", 60) == 0
    assert buckets.take("other", 60) == 0


def test_calls_of_long_ago_are_not_taken_again_once_their_key_is_used_again() -> None:
    clock = Clock()
    here, there = TokenBuckets(clock), TokenBuckets(clock)
    shared_here, shared_there = SharedCounts(here, _slots()), SharedCounts(there, _slots())

    def tell() -> None:
        shared_here.heard({"there": shared_there.report()})

    tell()
    for _ in range(200):
        clock.now += 1
        assert there.take("k", 60) == 0
        tell()
    clock.now += 600
    tell()
    assert there.take("k", 60) == 0
    tell()
    assert [here.take("k", 60) for _ in range(59)] == [0] * 59
    assert here.take("k", 60) > 0


@given(
    st.integers(1, 120),
    st.lists(
        st.tuples(st.floats(0, 3, allow_nan=False), st.integers(0, 2)), min_size=1, max_size=300
    ),
)
def test_in_the_long_run_all_servers_together_let_through_what_one_may(
    per_minute: int, calls: list[tuple[float, int]]
) -> None:
    """Three servers hear of each other with every tenth call of all."""
    clock = Clock()
    servers = [TokenBuckets(clock) for _ in range(3)]
    shared = [SharedCounts(one, _slots()) for one in servers]
    began, through = clock.now, 0
    for number, (pause, which) in enumerate(calls):
        if number % 10 == 0:
            for each, counts in enumerate(shared):
                counts.heard({str(n): one.report() for n, one in enumerate(shared) if n != each})
        clock.now += pause
        through += servers[which].take("k", per_minute) == 0
    refill = (clock.now - began) * per_minute / 60
    # At once each lets a full bucket through; ten calls more before the others have heard of them.
    assert through <= 3 * per_minute + refill + 3
    heard = per_minute + refill + 10 + 3
    if per_minute > 20:  # Else a whole bucket fits in between.
        assert through <= heard
