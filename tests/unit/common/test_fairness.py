"""Tenants take turns at what they share."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common import deadline, fairness
from mneme_server.common.deadline import Abandoned
from mneme_server.common.fairness import FairGate, FairQueue

WAIT_S = 20.0
TENANTS = ["a", "b", "c", "d"]


def taken(queue: FairQueue[str]) -> list[str]:
    items = []
    while (item := queue.pop()) is not None:
        items.append(item)
    return items


def test_two_that_wait_take_turns_however_much_one_of_them_asks_for() -> None:
    queue = FairQueue[str]()
    for number in range(5):
        queue.push("busy", f"busy {number}")
    queue.push("calm", "calm 0")
    queue.push("calm", "calm 1")
    assert taken(queue) == ["busy 0", "calm 0", "busy 1", "calm 1", "busy 2", "busy 3", "busy 4"]


def test_who_comes_last_is_next_after_one_turn_of_each_other() -> None:
    queue = FairQueue[str]()
    for lane in ("a", "b"):
        for number in range(100):
            queue.push(lane, f"{lane}{number}")
    for _ in range(50):
        queue.pop()
    queue.push("calm", "calm")
    assert "calm" in [queue.pop() for _ in range(3)]


def test_what_costs_much_is_followed_by_as_much_of_others() -> None:
    queue = FairQueue[str]()
    queue.push("large", "L1", 10)
    queue.push("large", "L2", 10)
    for number in range(30):
        queue.push("small", f"s{number}", 1)
    order = taken(queue)
    assert 9 <= order.index("L2") - order.index("L1") - 1 <= 11


def test_nobody_saves_up_turns_by_not_asking() -> None:
    queue = FairQueue[str]()
    for number in range(100):
        queue.push("busy", f"busy {number}")
    for _ in range(50):
        queue.pop()
    for number in range(100):
        queue.push("late", f"late {number}")
    given_now = [queue.pop() or "" for _ in range(20)]
    assert sum(item.startswith("busy") for item in given_now) in (9, 10, 11)


def test_a_head_that_may_not_go_holds_up_only_its_own_lane() -> None:
    queue = FairQueue[str]()
    queue.push("a", "stuck")
    queue.push("a", "behind it")
    queue.push("b", "free")
    assert queue.pop(lambda item: item != "stuck") == "free"
    assert queue.pop(lambda item: item != "stuck") is None
    assert taken(queue) == ["stuck", "behind it"]


@st.composite
def works(draw: st.DrawFn) -> list[tuple[str, int, float]]:
    """Pushes (tenant, number, cost) and pops (of no tenant), in an order."""
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from([*TENANTS, ""]), st.integers(1, 5)), min_size=1, max_size=80
        )
    )
    return [(tenant, number, float(cost)) for number, (tenant, cost) in enumerate(steps)]


@given(steps=works())
def test_everything_comes_out_once_and_each_lane_in_its_order(
    steps: list[tuple[str, int, float]],
) -> None:
    queue, pushed, popped = FairQueue[tuple[str, int]](), list[tuple[str, int]](), []
    for tenant, number, cost in steps:
        if tenant:
            queue.push(tenant, (tenant, number), cost)
            pushed.append((tenant, number))
        elif (item := queue.pop()) is not None:
            popped.append(item)
        assert len(queue) == len(pushed) - len(popped)
    while (item := queue.pop()) is not None:
        popped.append(item)
    assert sorted(popped) == sorted(pushed)
    for tenant in TENANTS:
        mine = [number for owner, number in popped if owner == tenant]
        assert mine == sorted(mine)


@given(steps=works())
def test_while_two_wait_neither_gets_more_than_its_own_and_one_item_more(
    steps: list[tuple[str, int, float]],
) -> None:
    queue, waiting = FairQueue[tuple[str, float]](), dict.fromkeys(TENANTS, 0)
    # What each was given while a pair waited all along, since both began to.
    given_s: dict[tuple[str, str], list[float]] = {}
    for tenant, _, cost in [*steps, *[("", 0, 0.0)] * 100]:
        if tenant:
            queue.push(tenant, (tenant, cost), cost)
            waiting[tenant] += 1
        elif (item := queue.pop()) is not None:
            got, paid = item
            for (one, other), sums in given_s.items():
                if got in (one, other):
                    sums[got == other] += paid
                    assert abs(sums[0] - sums[1]) <= 2 * 5.0
            waiting[got] -= 1
        for one in TENANTS:
            for other in TENANTS:
                if one < other and waiting[one] and waiting[other]:
                    given_s.setdefault((one, other), [0.0, 0.0])
                else:
                    given_s.pop((one, other), None)


@given(removed=st.sets(st.integers(0, 19)))
def test_what_need_not_wait_any_more_leaves_the_others_as_they_were(removed: set[int]) -> None:
    queue, items = FairQueue[list[int]](), [[number] for number in range(20)]
    for item in items:
        queue.push(TENANTS[item[0] % 3], item)
    for number in removed:
        assert queue.remove(TENANTS[number % 3], items[number])
        assert not queue.remove(TENANTS[number % 3], items[number])
    left = []
    while (item_left := queue.pop()) is not None:
        left.append(item_left[0])
    assert sorted(left) == [number for number in range(20) if number not in removed]


class Standing:
    """Callers before a gate whose one slot is taken until `open` is called."""

    def __init__(self, gate: FairGate) -> None:
        self._gate = gate
        self._pool = ThreadPoolExecutor(32)
        self.order: list[str] = []
        gate.enter()

    def caller(
        self, tenant: str, time_left: Callable[[], float | None] = lambda: None
    ) -> Future[None]:
        """Have a call of a tenant come to the gate; return when it stands there."""
        before = len(self._gate._waiting)

        def call() -> None:
            fairness.enter(tenant)
            deadline.enter(time_left)
            with self._gate.turn():
                self.order.append(tenant)

        future = self._pool.submit(contextvars.Context().run, call)
        while len(self._gate._waiting) == before and not future.done():
            threading.Event().wait(0.001)
        return future

    def open(self) -> None:
        """Give the slot away."""
        self._gate.leave()
        self._pool.shutdown(wait=True)


def test_at_a_gate_tenants_take_turns() -> None:
    standing = Standing(FairGate(1))
    futures = [standing.caller(t) for t in ("busy", "busy", "busy", "calm")]
    standing.open()
    for future in futures:
        future.result(WAIT_S)
    assert standing.order == ["busy", "calm", "busy", "busy"]


def test_who_has_left_leaves_the_line_and_the_next_comes_through() -> None:
    gate = FairGate(1)
    standing = Standing(gate)
    left = threading.Event()
    leaving = standing.caller("a", lambda: 0.0 if left.is_set() else 60.0)
    staying = standing.caller("a")
    left.set()
    with pytest.raises(Abandoned):
        leaving.result(WAIT_S)
    standing.open()
    staying.result(WAIT_S)
    with gate.turn():
        pass


def test_who_stays_though_the_caller_has_left_waits_and_does_not_spin() -> None:
    gate = FairGate(1)
    gate.enter()
    threading.Timer(0.5, gate.leave).start()
    with deadline.within(0.0):
        began = time.thread_time()
        assert gate.enter(stay=True)
    assert time.thread_time() - began < 0.05


def test_no_slot_is_lost_over_failures_and_departures() -> None:
    gate, counting = FairGate(2), threading.Lock()
    inside, most = 0, 0

    def call(number: int) -> None:
        nonlocal inside, most
        fairness.enter(TENANTS[number % 4])
        gone = number % 7 == 3
        deadline.enter(lambda: 0.0 if gone else None)
        with gate.turn():
            with counting:
                inside += 1
                most = max(most, inside)
            try:
                if number % 5 == 0:
                    raise ValueError("a call that fails")
            finally:
                with counting:
                    inside -= 1

    with ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(contextvars.Context().run, call, n) for n in range(400)]
    kinds = {type(future.exception(WAIT_S)) for future in futures}
    assert kinds == {type(None), ValueError, Abandoned}
    assert most <= 2
    gate.enter()
    gate.enter()
    assert gate._free == 0
