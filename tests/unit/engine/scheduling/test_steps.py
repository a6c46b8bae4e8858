"""Short work, tenants by turns; nobody waits for another's slow step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from mneme_server.common.fairness import on_behalf_of
from mneme_server.common.watchdog import Watchdog
from mneme_server.engine.scheduling.steps import Steps

LONG_S = 20.0


@pytest.fixture
def make() -> Iterator[Callable[..., Steps]]:
    with ExitStack() as made:
        watchdog = Watchdog()
        made.callback(watchdog.close)

        def steps(**options: int) -> Steps:
            one = Steps(watchdog, **options)
            made.callback(one.close)
            return one

        yield steps


class Stuck:
    """A step that ends when a test lets it."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.may_end = threading.Event()

    def __call__(self) -> None:
        self.began.release()
        assert self.may_end.wait(LONG_S)


def test_steps_are_done_on_behalf_of_their_tenants(make: Callable[..., Steps]) -> None:
    seen: dict[str, str] = {}
    done = threading.Semaphore(0)

    def note(tenant_id: str) -> None:
        seen[tenant_id] = on_behalf_of()
        done.release()

    steps = make()
    for tenant_id in ("a", "b"):
        steps.run(tenant_id, lambda tenant_id=tenant_id: note(tenant_id))
        assert done.acquire(timeout=LONG_S)
    assert seen == {"a": "a", "b": "b"}


def test_a_slow_step_is_replaced_so_that_others_are_done(make: Callable[..., Steps]) -> None:
    steps, stuck, done = make(threads=1, most=8), Stuck(), threading.Event()
    for _ in range(3):
        steps.run("busy", stuck)
    for _ in range(3):
        assert stuck.began.acquire(timeout=LONG_S)
    steps.run("busy", done.set)
    assert done.wait(LONG_S), "of the same tenant, too"
    stuck.may_end.set()


def test_a_tenant_cannot_have_all_threads_stuck(make: Callable[..., Steps]) -> None:
    steps, stuck, done = make(threads=1, most=8), Stuck(), threading.Event()
    for _ in range(20):
        steps.run("busy", stuck)
    assert stuck.began.acquire(timeout=LONG_S)
    for _ in range(10):
        done.clear()
        steps.run("calm", done.set)
        assert done.wait(LONG_S)
    stuck.may_end.set()
    for _ in range(19):
        assert stuck.began.acquire(timeout=LONG_S), "the others are done in the end"


def test_a_step_that_fails_harms_no_other(make: Callable[..., Steps]) -> None:
    steps, done = make(threads=1), threading.Event()

    def fail() -> None:
        raise KeyError("a bug")

    for _ in range(5):
        steps.run("a", fail)
    steps.run("a", done.set)
    assert done.wait(LONG_S)


def test_a_step_that_no_thread_can_be_had_for_is_refused_and_not_done_later(
    make: Callable[..., Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    steps, refused, done = make(), threading.Event(), threading.Event()
    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", no_memory)
        with pytest.raises(RuntimeError):
            steps.run("a", refused.set)
    steps.run("a", done.set)
    assert done.wait(LONG_S)
    assert not refused.is_set()
