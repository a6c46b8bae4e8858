"""Tenants take turns at work in the background; a slow step keeps only its own tenant waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from mneme_server.common.turns import computing
from mneme_server.engine.background import tenant_worker
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.scheduling.foreground import Foreground

LONG_S = 20.0


class Worker(TenantWorker):
    """Notes whose steps it does; those of tenants called "slow…" end when the test says so."""

    def __init__(self) -> None:
        super().__init__("test", thread="test-worker")
        self.done: list[str] = []
        self.at_work: list[str] = []
        self.twice = False
        self.may_end = threading.Event()
        self.stepped = threading.Semaphore(0)

    def step(self, tenant_id: str) -> int | None:
        self.twice |= tenant_id in self.at_work
        self.at_work.append(tenant_id)
        if tenant_id.startswith("slow"):
            assert self.may_end.wait(LONG_S)
        self.at_work.remove(tenant_id)
        self.done.append(tenant_id)
        self.stepped.release()
        return None


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(tenant_worker, "_SLOW_S", 0.05)
    monkeypatch.setattr(tenant_worker, "_LAST_STEP_S", LONG_S)
    worker = Worker()
    worker.start()
    yield worker
    worker.may_end.set()
    worker.stop()
    assert not worker._threads


def test_a_slow_step_keeps_no_other_tenant_waiting(worker: Worker) -> None:
    for tenant_id in ("slow-1", "slow-2", "a", "b"):
        worker.wake(tenant_id)
    for _ in range(2):
        assert worker.stepped.acquire(timeout=LONG_S)
    assert worker.done == ["a", "b"]
    assert worker.is_waiting("slow-1")
    worker.may_end.set()
    for _ in range(2):
        assert worker.stepped.acquire(timeout=LONG_S)
    assert sorted(worker.done) == ["a", "b", "slow-1", "slow-2"]
    worker.wake("c")
    assert worker.stepped.acquire(timeout=LONG_S), "a thread is left when the slow ones have ended"


def test_a_tenant_that_is_woken_during_its_slow_step_has_the_next_one_after_it(
    worker: Worker,
) -> None:
    worker.wake("slow")
    worker.wake("a")
    assert worker.stepped.acquire(timeout=LONG_S)
    worker.wake("slow")
    worker.wake("b")
    assert worker.stepped.acquire(timeout=LONG_S)
    assert worker.done == ["a", "b"]
    worker.may_end.set()
    for _ in range(2):
        assert worker.stepped.acquire(timeout=LONG_S)
    assert worker.done == ["a", "b", "slow", "slow"]
    assert not worker.twice


def test_a_step_gives_way_to_calls_and_computes_in_a_large_turn() -> None:
    foreground, large, hurried = Foreground(), list[bool](), threading.Event()

    class Computing(TenantWorker):
        def step(self, tenant_id: str) -> int | None:
            with foreground.active():
                threading.Timer(0.05, hurry).start()
                self.give_way()
                assert hurried.is_set()
            with computing():
                large.append(not foreground._large._free)
            done.set()
            return None

    def hurry() -> None:
        hurried.set()

    done = threading.Event()
    worker = Computing("test", thread="test-worker")
    worker.give_way_to(foreground)
    worker.start()
    worker.wake("a")
    assert done.wait(LONG_S)
    worker.stop()
    assert large == [True]
