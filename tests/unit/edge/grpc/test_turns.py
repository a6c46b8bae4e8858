"""One call at a time begins to work in Python, and nothing stands still for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from mneme_server.common import interpreter
from mneme_server.edge.grpc.workers import Lane, Workers

LONG_S = 60.0
A_MOMENT_S = 0.05
"""Long enough for a call to begin that should not; too short a one would only hide a mistake."""


class Asked:
    """A call that tells when it began, and stays until it is let go."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self._work = work

    def __call__(self) -> None:
        self.began.set()
        self._work()
        assert self.may_end.wait(LONG_S)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    return lambda seconds: monkeypatch.setattr(interpreter, "PATIENCE_S", seconds)


@pytest.fixture
def workers(patience: Callable[[float], None]) -> Iterator[Workers]:
    patience(LONG_S)
    made = Workers(8, 100)
    yield made
    made.shutdown()


def ask(workers: Workers, call: Callable[[], Any], *, streams: bool = False) -> Future[Any]:
    workers.next_is(Lane("tenant", streams))
    return workers.submit(call)


def test_a_second_call_begins_when_the_first_has_ended(workers: Workers) -> None:
    first, second = Asked(), Asked()
    ask(workers, first)
    assert first.began.wait(LONG_S)
    ask(workers, second)
    assert not second.began.wait(A_MOMENT_S)
    first.may_end.set()
    assert second.began.wait(LONG_S)
    second.may_end.set()


def test_who_leaves_the_turn_lets_the_next_one_begin_and_goes_on(workers: Workers) -> None:
    first, second, third = Asked(interpreter.leave_turn), Asked(), Asked()
    for call in (first, second, third):
        ask(workers, call)
    assert first.began.wait(LONG_S)
    assert second.began.wait(LONG_S)
    first.may_end.set()  # It has no turn any more that it could give back.
    assert not third.began.wait(A_MOMENT_S)
    second.may_end.set()
    assert third.began.wait(LONG_S)
    third.may_end.set()


def test_a_turn_is_left_once(workers: Workers) -> None:
    def leave_twice() -> None:
        interpreter.leave_turn()
        interpreter.leave_turn()

    first, second, third = Asked(leave_twice), Asked(), Asked()
    for call in (first, second, third):
        ask(workers, call)
    assert second.began.wait(LONG_S)
    assert not third.began.wait(A_MOMENT_S)
    for call in (first, second, third):
        call.may_end.set()


def test_nobody_waits_for_long_for_a_turn(
    workers: Workers, patience: Callable[[float], None]
) -> None:
    patience(0.001)
    calls = [Asked() for _ in range(4)]
    for call in calls:
        ask(workers, call)
    for call in calls:
        assert call.began.wait(LONG_S)
    for call in calls:
        call.may_end.set()


def test_streams_need_no_turn(workers: Workers) -> None:
    first, waiting, stream = Asked(), Asked(), Asked()
    ask(workers, first)
    ask(workers, waiting)
    ask(workers, stream, streams=True)
    assert stream.began.wait(LONG_S)
    assert not waiting.began.wait(A_MOMENT_S)
    for call in (first, waiting, stream):
        call.may_end.set()


def test_a_call_that_fails_or_is_cancelled_gives_the_turn_back(workers: Workers) -> None:
    def fail() -> None:
        raise ValueError("broken")

    assert isinstance(ask(workers, fail).exception(LONG_S), ValueError)
    first = Asked()
    ask(workers, first)
    assert first.began.wait(LONG_S)
    assert ask(workers, Asked()).cancel()
    first.may_end.set()
    assert ask(workers, lambda: 1).result(LONG_S) == 1


def test_leaving_without_a_turn_does_nothing(workers: Workers) -> None:
    interpreter.leave_turn()
    assert ask(workers, lambda: 1).result(LONG_S) == 1
