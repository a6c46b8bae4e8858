"""Calls go before work in the background, and few of them compute at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from mneme_server.common import deadline, fairness, turns
from mneme_server.common.begun import Begun
from mneme_server.common.errors import Unavailable
from mneme_server.common.pages import PAGE_BYTES
from mneme_server.common.turns import SMALL
from mneme_server.engine.scheduling.foreground import Foreground, Shift

LONG_S = 20.0


def test_no_more_calls_compute_at_once_than_may() -> None:
    foreground = Foreground(at_once=2)
    computing, most = 0, 0
    counting = threading.Lock()

    def call() -> None:
        nonlocal computing, most
        with foreground.turn().computing():
            with counting:
                computing += 1
                most = max(most, computing)
            time.sleep(0.01)
            with counting:
                computing -= 1

    run_all([call] * 8)
    assert most == 2


def test_who_waits_outside_lets_another_compute() -> None:
    foreground = Foreground(at_once=1)
    other_computed = threading.Event()

    def wait() -> bool:
        return other_computed.wait(LONG_S)

    def one() -> None:
        with bound(foreground), turns.computing():
            assert turns.outside(wait)

    def other() -> None:
        with foreground.turn().computing():
            other_computed.set()

    run_all([one, other])


def test_who_has_nothing_to_wait_for_keeps_its_place() -> None:
    foreground, order = Foreground(at_once=1), list[str]()
    computes, comes = threading.Event(), threading.Event()

    def one() -> None:
        with bound(foreground), turns.computing():
            computes.set()
            assert comes.wait(LONG_S)
            assert turns.outside(Begun(lambda: "a vector")) == "a vector"
            order.append("one")

    def other() -> None:
        assert computes.wait(LONG_S)
        comes.set()
        with foreground.turn().computing():
            order.append("other")

    run_all([one, other])
    assert order == ["one", "other"]


def test_a_wait_that_fails_takes_the_slot_back() -> None:
    foreground = Foreground(at_once=1)

    def fail() -> None:
        raise ValueError("no embedding")

    with bound(foreground), pytest.raises(ValueError, match="no embedding"), turns.computing():
        turns.outside(fail)
    with foreground.turn().computing():
        pass


def test_a_call_whose_caller_has_left_does_not_compute() -> None:
    foreground, computed = Foreground(at_once=1), list[int]()

    def late() -> None:
        deadline.enter(lambda: 0.0)
        with pytest.raises(Unavailable), foreground.turn().computing():
            computed.append(1)

    run_all([late])
    assert computed == []
    with foreground.turn().computing():
        pass


def test_small_calls_compute_while_a_large_one_does() -> None:
    foreground = Foreground(at_once=1)
    small_computed = threading.Event()

    def large() -> None:
        with foreground.turn(large=True).computing():
            assert small_computed.wait(LONG_S)

    def small() -> None:
        with foreground.turn().computing():
            small_computed.set()

    run_all([large, small])


def test_large_calls_wait_for_each_other() -> None:
    foreground = Foreground(at_once=8)
    computing, most = 0, 0

    def call() -> None:
        nonlocal computing, most
        with foreground.turn(large=True).computing():
            computing += 1
            most = max(most, computing)
            time.sleep(0.005)
            computing -= 1

    run_all([call] * 6)
    assert most == 1


def test_a_large_call_works_off_its_items_in_parts_and_in_order() -> None:
    foreground, most_at_once = Foreground(), list[int]()
    numbers = list(range(3 * SMALL + 1))
    waited = threading.Event()

    def other_large() -> None:
        with foreground.turn(large=True).computing():
            waited.set()

    def double(number: int) -> int:
        if number == 0:
            other.start()
        most_at_once.append(number)
        return number * 2

    other = threading.Thread(target=other_large)
    with bound(foreground, large=True):
        assert turns.each(double, numbers) == [2 * number for number in numbers]
    other.join(LONG_S)
    assert waited.is_set()


def test_many_items_are_given_up_between_parts_when_the_caller_leaves() -> None:
    foreground, made = Foreground(), list[int]()

    def call() -> None:
        deadline.enter(lambda: 0.0 if made else None)
        with bound(foreground, large=True), pytest.raises(deadline.Abandoned):
            turns.each(made.append, list(range(10 * SMALL)))

    run_all([call])
    assert len(made) == SMALL
    with foreground.turn(large=True).computing():
        pass


def rows_after(reads: list[tuple[int | None, int]], rows: int) -> Callable[..., list[int]]:
    """Read of the rows 1 to `rows`; note how it is asked."""

    def read(after: int | None, limit: int) -> list[int]:
        reads.append((after, limit))
        first = (after or 0) + 1
        return list(range(first, min(first + limit, rows + 1)))

    return read


@pytest.mark.parametrize(
    ("rows", "limit", "expected"),
    [
        (1_000, 20, [(None, 20)]),
        (5, 20, [(None, 20)]),
        (1_000, 250, [(None, 100), (100, 100), (200, 50)]),
        (130, 250, [(None, 100), (100, 100)]),
        (200, 250, [(None, 100), (100, 100), (200, 50)]),
        (0, 250, [(None, 100)]),
    ],
)
def test_a_large_page_is_read_in_parts_and_a_small_one_at_once(
    rows: int, limit: int, expected: list[tuple[int | None, int]]
) -> None:
    reads: list[tuple[int | None, int]] = []
    with bound(Foreground(), large=limit > SMALL):
        found = turns.read_page(rows_after(reads, rows), None, limit, lambda row: row)
    assert found == list(range(1, min(rows, limit) + 1))
    assert reads == expected


def test_of_a_large_page_no_more_is_read_than_an_answer_can_carry() -> None:
    reads: list[tuple[int | None, int]] = []
    with bound(Foreground(), large=True):
        found = turns.read_page(
            rows_after(reads, 1_000), None, 1_000, lambda row: row, lambda _row: PAGE_BYTES // 150
        )
    assert len(found) == 200
    assert reads == [(None, 100), (100, 100)]


def test_other_tenants_have_their_turn_between_the_parts_of_a_large_page() -> None:
    foreground, order = Foreground(), list[str]()
    began, other_waits = threading.Event(), threading.Event()

    def read(after: int | None, limit: int) -> list[int]:
        order.append("part")
        began.set()
        assert other_waits.wait(LONG_S)
        while not foreground._large.is_waited_for_by_others() and len(order) == 1:
            time.sleep(0.001)
        return list(range(limit))

    def page() -> None:
        fairness.enter("busy")
        with bound(foreground, large=True):
            turns.read_page(read, None, 300, lambda row: row)

    def other() -> None:
        fairness.enter("calm")
        assert began.wait(LONG_S)
        other_waits.set()
        with foreground.turn(large=True).computing():
            order.append("other")

    run_all([page, other])
    assert order == ["part", "other", "part", "part"]


def test_what_must_be_done_is_done_to_the_end_when_the_caller_leaves() -> None:
    foreground, done = Foreground(), list[int]()

    def call() -> None:
        deadline.enter(lambda: 0.0)
        foreground.finish([lambda n=n: done.append(n) for n in range(5)])  # type: ignore[misc]

    run_all([call])
    assert done == [0, 1, 2, 3, 4]


def test_large_calls_of_other_tenants_have_their_turn_between_the_steps_of_what_must_be_done() -> (
    None
):
    foreground, order = Foreground(), list[str]()

    def other() -> None:
        fairness.enter("other")
        with foreground.turn(large=True).computing():
            order.append("other")

    def first_step() -> None:
        waiting.start()
        while not foreground._large.is_waited_for_by_others():
            time.sleep(0.001)

    waiting = threading.Thread(target=other)
    foreground.finish([first_step, lambda: order.append("last step")])
    waiting.join(LONG_S)
    assert order == ["other", "last step"]


def test_before_its_next_part_a_large_call_lets_the_small_ones_go_first() -> None:
    foreground = Foreground()
    small_computes, large_waits, order = threading.Event(), threading.Event(), list[str]()

    def small() -> None:
        with foreground.turn().computing():
            small_computes.set()
            assert large_waits.wait(LONG_S)
            order.append("small")

    def large() -> None:
        foreground._large_took_s = LONG_S  # It has had enough for now.
        assert small_computes.wait(LONG_S)
        large_waits.set()
        with foreground.turn(large=True).computing():
            order.append("large")

    run_all([small, large])
    assert order == ["small", "large"]


def test_small_calls_without_a_pause_do_not_stop_a_large_one() -> None:
    foreground, large_is_done = Foreground(), threading.Event()

    def small() -> None:
        with foreground.turn().computing():
            assert large_is_done.wait(LONG_S)

    def large() -> None:
        with bound(foreground, large=True):
            turns.each(lambda number: number, list(range(10 * SMALL)))
        large_is_done.set()

    run_all([small, large])


def test_the_background_goes_on_at_once_while_no_call_is_at_work() -> None:
    paused: list[float] = []
    gave_way(Foreground(), paused)
    assert paused == []


def test_the_background_gives_way_while_a_call_is_at_work_but_not_for_ever() -> None:
    foreground, paused = Foreground(), list[float]()
    with foreground.active():
        gave_way(foreground, paused)
    assert 0.2 < sum(paused) < 0.3


def test_the_background_waits_for_a_short_quiet_after_a_call() -> None:
    foreground, paused = Foreground(), list[float]()
    with foreground.active():
        pass
    gave_way(foreground, paused)
    assert 0 < sum(paused) < 0.05


def test_the_background_gives_way_to_nobody_while_a_call_waits_for_it() -> None:
    foreground, paused = Foreground(), list[float]()
    with foreground.active(), foreground.hurry():
        gave_way(foreground, paused)
    assert paused == []


def test_small_steps_in_the_background_give_way_together_and_the_first_after_a_pause() -> None:
    now, gave_way_at = [100.0], list[float]()
    shift = Shift(lambda: gave_way_at.append(now[0]), clock=lambda: now[0])
    for took_s in (0.02, 0.02, 0.02, 0.02, 7.0, 0.02):
        shift.step()
        now[0] += took_s
    assert gave_way_at == pytest.approx([100.0, 100.06, 107.08])


def test_a_turn_inside_a_turn_is_the_same_one() -> None:
    foreground, done = Foreground(at_once=1), list[str]()

    def call(large: bool) -> None:
        with bound(foreground, large=large), turns.computing():
            with turns.computing(), turns.piece():
                done.append("inside")
            foreground.finish([lambda: done.append("finished")])
            assert not foreground._small._free or not foreground._large._free

    run_all([partial(call, False), partial(call, True)])
    assert sorted(done) == ["finished", "finished", "inside", "inside"]
    assert foreground._small._free == foreground._large._free == 1


def test_while_a_call_waits_outside_it_may_take_another_turn() -> None:
    foreground = Foreground(at_once=1)

    def compute() -> str:
        with turns.computing():
            return "computed"

    def call() -> None:
        with bound(foreground), turns.computing():
            assert turns.outside(compute) == "computed"
            assert not foreground._small._free

    run_all([call])
    assert foreground._small._free == 1


def test_a_piece_of_what_takes_long_is_large_in_a_small_call() -> None:
    foreground = Foreground()
    with bound(foreground), turns.piece():
        assert not foreground._large._free
    with bound(foreground), turns.computing():
        assert foreground._large._free


def test_a_small_call_gives_way_to_nobody_between_two_parts() -> None:
    foreground, order = Foreground(at_once=1), list[str]()
    computes, comes = threading.Event(), threading.Event()

    def one() -> None:
        with bound(foreground), turns.computing():
            computes.set()
            assert comes.wait(LONG_S)
            while not len(foreground._small._waiting):
                time.sleep(0.001)
            turns.between()
            order.append("one")

    def other() -> None:
        fairness.enter("other")
        assert computes.wait(LONG_S)
        comes.set()
        with foreground.turn().computing():
            order.append("other")

    run_all([one, other])
    assert order == ["one", "other"]


def test_work_without_a_turn_goes_on_until_nobody_waits_for_it() -> None:
    assert turns.each(str, list(range(40))) == [str(number) for number in range(40)]
    assert turns.outside(lambda: 1) == 1
    with turns.active(), turns.hurry(), turns.piece():
        turns.between()

    def late() -> None:
        deadline.enter(lambda: 0.0)
        with pytest.raises(deadline.Abandoned), turns.computing():
            pass
        with pytest.raises(deadline.Abandoned):
            turns.between()

    run_all([late])


@contextmanager
def bound(foreground: Foreground, *, large: bool = False) -> Iterator[None]:
    """Have the block compute as a call does."""
    turns.enter(foreground.turn(large=large))
    try:
        yield
    finally:
        turns.leave()


def gave_way(foreground: Foreground, paused: list[float]) -> None:
    """Let the background give way, on a clock of its own; note its pauses."""
    now = time.monotonic()

    def sleep(seconds: float) -> None:
        paused.append(seconds)

    foreground.give_way(clock=lambda: now + sum(paused), sleep=sleep)


def run_all(calls: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
