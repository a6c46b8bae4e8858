"""What takes longer than it may."""

from __future__ import annotations

import threading

import pytest
from mneme_server.common.watchdog import Watchdog

LONG_S = 20.0


def test_what_is_not_done_in_time_is_given_up_once() -> None:
    watchdog, given_up = Watchdog(), threading.Semaphore(0)
    with watchdog.limit(0.01, given_up.release):
        assert given_up.acquire(timeout=LONG_S)
    assert not given_up.acquire(timeout=0.05)


def test_what_is_done_in_time_is_not_given_up() -> None:
    watchdog, given_up, other = Watchdog(), threading.Event(), threading.Event()
    with watchdog.limit(0.5, given_up.set):
        pass
    with watchdog.limit(0.6, other.set):
        assert other.wait(LONG_S), "its time was up later"
    assert not given_up.is_set()


def test_the_shorter_of_two_limits_is_the_first_whenever_it_began() -> None:
    watchdog, order = Watchdog(), list[str]()
    both = threading.Semaphore(0)
    with (
        watchdog.limit(0.3, lambda: (order.append("long"), both.release())),
        watchdog.limit(0.05, lambda: (order.append("short"), both.release())),
    ):
        assert both.acquire(timeout=LONG_S)
        assert both.acquire(timeout=LONG_S)
    assert order == ["short", "long"]


def test_one_thread_watches_over_everything_and_outlives_what_fails() -> None:
    watchdog, threads = Watchdog(), set[str]()
    done = threading.Semaphore(0)

    def give_up() -> None:
        threads.add(threading.current_thread().name)
        done.release()
        raise RuntimeError("cannot be given up")

    for _ in range(50):
        watchdog.watch(0.01, give_up)
    for _ in range(50):
        assert done.acquire(timeout=LONG_S)
    assert threads == {"watchdog"}


def test_a_thread_that_cannot_be_had_is_asked_for_again_with_the_next_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watchdog, given_up = Watchdog(), threading.Semaphore(0)
    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", _no_memory)
        watchdog.watch(0.01, given_up.release)
    watchdog.watch(0.01, given_up.release)
    for _ in range(2):
        assert given_up.acquire(timeout=LONG_S)


def _no_memory(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
