"""Turns: one call begins at a time, and nothing stands still for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from mneme_server.common.interpreter import Turns

_LONG_S = 60.0


class _Other:
    """A thread that wants a turn."""

    def __init__(self, turns: Turns, work: Callable[[], object] = lambda: None) -> None:
        self.began = threading.Event()
        self._turns, self._work = turns, work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._turns.taken():
            self.began.set()
            self._work()

    def join(self) -> None:
        self._thread.join(_LONG_S)
        assert not self._thread.is_alive()


def test_a_second_call_begins_when_the_first_has_ended() -> None:
    turns = Turns(_LONG_S)
    with turns.taken():
        other = _Other(turns)
        assert not other.began.wait(0.05)
    assert other.began.wait(_LONG_S)
    other.join()


def test_who_leaves_the_turn_lets_the_next_one_begin_and_goes_on() -> None:
    turns = Turns(_LONG_S)
    with turns.taken():
        other = _Other(turns)
        turns.leave()
        assert other.began.wait(_LONG_S)
        other.join()
        turns.leave()  # A second time it is no longer there to be left.
        with_a_third = _Other(turns)
        assert with_a_third.began.wait(_LONG_S)
        with_a_third.join()


def test_who_left_the_turn_does_not_take_it_from_the_next_one_at_its_end() -> None:
    turns, goes_on = Turns(_LONG_S), threading.Event()
    with turns.taken():
        turns.leave()
        second = _Other(turns, goes_on.wait)
        assert second.began.wait(_LONG_S)
    third = _Other(turns)
    assert not third.began.wait(0.05)
    goes_on.set()
    assert third.began.wait(_LONG_S)
    second.join()
    third.join()


def test_who_waited_for_long_goes_on_without_the_turn() -> None:
    turns = Turns(0.001)
    with turns.taken():
        other = _Other(turns)
        assert other.began.wait(_LONG_S)
        other.join()
    with turns.taken():  # It is still one turn.
        pass


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns(_LONG_S)
    with pytest.raises(ValueError, match="broken"), turns.taken():
        raise ValueError("broken")
    other = _Other(turns)
    assert other.began.wait(_LONG_S)
    other.join()


def test_leaving_without_a_turn_does_nothing() -> None:
    turns = Turns(_LONG_S)
    turns.leave()
    with turns.taken():
        assert not _Other(turns).began.wait(0.05)
