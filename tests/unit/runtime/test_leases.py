"""A tenant's work is done by whoever holds its lease; whoever else finds some says so."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from mneme_server.common.errors import Unavailable
from mneme_server.common.fencing import Fence, LeaseLost, current
from mneme_server.corpus.erasures import Erasure
from mneme_server.corpus.nodes import Head
from mneme_server.runtime.leases import Leases
from mneme_server.runtime.turns import TenantWorker


class Store:
    """Where nodes take leases, in memory."""

    def __init__(self) -> None:
        self.leases: dict[str, Fence] = {}
        self.dead: set[str] = set()
        self.asked = 0


class FakeNode:
    lives_s = 3600.0
    erasures: Any = None

    def __init__(self, store: Store, name: str) -> None:
        self.id = name
        self._store = store

    def take(self, name: str, tenant_id: str) -> Fence | None:
        self._store.asked += 1
        held = self._store.leases.get(name)
        if held is not None and held.node != self.id and held.node not in self._store.dead:
            return None
        made = Fence(name, tenant_id, self.id, self._store.asked)
        self._store.leases[name] = made
        return made

    def release(self, fence: Fence) -> None:
        if self._store.leases.get(fence.name) == fence:
            del self._store.leases[fence.name]

    def listen(self, seconds: float) -> None: ...

    def tell(self) -> None: ...

    def heads(self, tenants: Collection[str]) -> Sequence[Head]:
        return []

    def beat(self) -> tuple[int, Sequence[str]]:
        return 1, []

    def others(self) -> int:
        return 1

    def due(self) -> Sequence[Erasure]:
        return []

    def orphans(self) -> Sequence[str]:
        return []

    def want(self, tenants: Collection[str]) -> Collection[str]:
        return tenants

    def wanted(self) -> Sequence[str]:
        return []

    def close(self) -> None: ...


def leases_of(store: Store, name: str) -> Leases:
    leases = Leases(FakeNode(store, name))
    leases.alive(time.monotonic())
    return leases


class Worker(TenantWorker):
    def __init__(self, leases: Leases, *, loses: bool = False) -> None:
        super().__init__("test", thread="test")
        self.share(leases)
        self.fences: list[Fence | None] = []
        self._loses = loses

    def step(self, tenant_id: str) -> int | None:
        self.fences.append(current())
        if self._loses:
            raise LeaseLost
        return None


def test_one_server_holds_a_tenants_lease_and_keeps_it() -> None:
    store = Store()
    one, other = leases_of(store, "one"), leases_of(store, "other")
    held = one.hold("acme")
    assert held is not None
    assert one.hold("acme") == held
    assert other.hold("acme") is None
    assert one.holds("acme")
    assert not other.holds("acme")


def test_whoever_finds_work_of_another_says_so_once() -> None:
    store = Store()
    one, other = leases_of(store, "one"), leases_of(store, "other")
    one.hold("acme")
    other.hold("acme")
    other.hold("acme")
    assert other.wanted() == {"acme"}
    assert other.wanted() == set()
    assert store.asked == 2, "it is not asked again at once whose the lease is"


def test_a_lease_that_is_released_or_whose_server_died_is_taken() -> None:
    store = Store()
    one, other = leases_of(store, "one"), leases_of(store, "other")
    one.hold("acme")
    one.hold("rival")
    one.release("acme")
    store.dead.add("one")
    assert other.hold("acme") is not None
    assert other.hold("rival") is not None


def test_a_server_that_cannot_say_that_it_lives_does_no_work() -> None:
    store = Store()
    leases = leases_of(store, "one")
    leases.hold("acme")
    leases.alive(time.monotonic() - 3601)
    with pytest.raises(Unavailable):
        leases.hold("acme")


def test_a_step_is_done_under_its_lease_and_by_nobody_else() -> None:
    store = Store()
    one, other = leases_of(store, "one"), leases_of(store, "other")
    mine, theirs = Worker(one), Worker(other)
    mine._do_step("acme")
    theirs._do_step("acme")
    assert mine.fences == [store.leases["acme"]]
    assert theirs.fences == []
    assert current() is None


def test_a_server_whose_lease_was_lost_asks_for_it_again() -> None:
    store = Store()
    leases = leases_of(store, "one")
    worker = Worker(leases, loses=True)
    worker._do_step("acme")
    assert not leases.holds("acme")
    assert worker.is_waiting("acme"), "it finds out who does the work now"
