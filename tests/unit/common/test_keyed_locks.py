"""One at a time holds a key's lock, whoever fails, and no key is remembered that nobody uses."""

from __future__ import annotations

import queue
import threading
import time

import pytest
from mneme_server.common.keyed_locks import KeyedLocks

PATIENCE_S = 60.0


def test_one_at_a_time_holds_a_key_also_after_one_who_failed() -> None:
    locks, inside, most = KeyedLocks[str](), list[int](), list[int]()

    def work(number: int) -> None:
        try:
            with locks.holding("a"):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.001)
                inside.remove(number)
                if number % 2:
                    raise RuntimeError(f"{number} failed")
        except RuntimeError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert most == [1] * 40


def test_who_comes_as_one_fails_waits_for_who_waited_before() -> None:
    """With a lock that is forgotten as soon as it is released, two would be inside."""
    locks = KeyedLocks[str]()
    inside, go_on = queue.SimpleQueue[str](), threading.Event()

    def hold(name: str) -> None:
        with locks.holding("a"):
            inside.put(name)
            assert go_on.wait(PATIENCE_S)

    second, third = (threading.Thread(target=hold, args=(name,)) for name in ("second", "third"))

    def fail_once_somebody_waits() -> None:
        with locks.holding("a"):
            second.start()
            _wait_for_users(locks, 2)
            raise RuntimeError("it failed")

    with pytest.raises(RuntimeError):
        fail_once_somebody_waits()
    assert inside.get(timeout=PATIENCE_S) == "second"
    third.start()
    _wait_for_users(locks, 2)
    assert inside.empty()
    go_on.set()
    assert inside.get(timeout=PATIENCE_S) == "third"
    second.join(PATIENCE_S)
    third.join(PATIENCE_S)


def _wait_for_users(locks: KeyedLocks[str], count: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while locks._users["a"] < count:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_other_keys_are_free_and_none_is_remembered() -> None:
    locks = KeyedLocks[str]()
    with locks.holding("a"), locks.holding("b"):
        assert len(locks) == 2
    assert len(locks) == 0
