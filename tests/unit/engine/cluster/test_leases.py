"""A tenant's work is done by whoever holds its lease; whoever else finds some says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest
from mneme_server.common import fairness
from mneme_server.common.errors import Unavailable
from mneme_server.common.fencing import Fence, LeaseLost, current
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.cluster import leases
from mneme_server.engine.cluster.leases import NodeLeases
from mneme_server.engine.corpus.nodes import Erasure, Head


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

    def beat(
        self, counts: Mapping[str, Any]
    ) -> tuple[int, Sequence[str], Mapping[str, Mapping[str, Any]]]:
        return 1, [], {}

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


def leases_of(store: Store, name: str, *, on_demand: bool = False) -> NodeLeases:
    leases = NodeLeases(FakeNode(store, name), "x/" if on_demand else "", on_demand=on_demand)
    leases.alive(time.monotonic())
    return leases


class Worker(TenantWorker):
    def __init__(self, leases: NodeLeases, *, loses: bool = False) -> None:
        super().__init__("test", thread="test")
        self.share(leases)
        self.fences: list[Fence | None] = []
        self._loses = loses

    def step(self, tenant_id: str) -> int | None:
        self.fences.append(current())
        if self._loses:
            raise LeaseLost
        return None


@pytest.fixture(autouse=True)
def _on_behalf_of_nobody() -> Iterator[None]:
    """A step leaves its thread on behalf of its tenant: here it is the thread of other tests."""
    yield
    fairness.enter("")


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


def test_threads_that_want_a_lease_at_once_share_the_one_that_is_taken() -> None:
    store = Store()
    node = FakeNode(store, "one")
    inside, may_go = threading.Semaphore(0), threading.Event()
    take = node.take

    def slowly(name: str, tenant_id: str) -> Fence | None:
        inside.release()
        assert may_go.wait(60)
        return take(name, tenant_id)

    node.take = slowly  # type: ignore[method-assign]
    made = NodeLeases(node)
    made.alive(time.monotonic())
    held: list[Fence | None] = []
    threads = [threading.Thread(target=lambda: held.append(made.hold("acme"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert inside.acquire(timeout=60)
    may_go.set()
    for thread in threads:
        thread.join()
    assert held == [store.leases["acme"]] * 4
    assert store.asked == 1


def test_a_lease_on_demand_is_handed_over_to_whoever_claims_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()
    one, other = (leases_of(store, name, on_demand=True) for name in ("one", "other"))
    held = one.hold("acme")
    assert held is not None
    assert held.name == "x/acme"
    assert other.hold("acme") is None
    assert other.wanted() == set(), "who only looks claims nothing"
    assert other.claim("acme", 0.0) is None
    let_go: list[str] = []
    one.give_up("acme", let_go.append)
    assert one.holds("acme"), "it was taken just now"
    monkeypatch.setattr(leases, "_KEPT_S", 0.0)
    one.give_up("acme", let_go.append)
    assert let_go == ["acme"]
    assert not one.holds("acme")
    assert other.claim("acme", 0.0) is not None
    one.give_up("acme", let_go.append)
    assert let_go == ["acme"], "it holds nothing more"


def test_who_claims_a_lease_has_its_holder_told_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_KEPT_S", 0.0)
    store = Store()
    one, other = (leases_of(store, name, on_demand=True) for name in ("one", "other"))
    one.hold("acme")

    def told() -> None:
        while not other.wanted():
            time.sleep(0.01)
        one.give_up("acme", lambda _tenant: None)

    telling = threading.Thread(target=told)
    telling.start()
    assert other.claim("acme", 60.0) is not None
    telling.join()


def test_a_lease_is_handed_over_also_when_what_it_is_of_cannot_be_let_go_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "_KEPT_S", 0.0)
    store = Store()
    one, other = (leases_of(store, name, on_demand=True) for name in ("one", "other"))
    one.hold("acme")

    def fails(_tenant: str) -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        one.give_up("acme", fails)
    assert other.claim("acme", 0.0) is not None


def test_a_lease_that_is_being_handed_over_is_not_taken_back_by_who_lets_go_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "_KEPT_S", 0.0)
    monkeypatch.setattr(leases, "_LEFT_S", 3600.0)
    store = Store()
    one, other = (leases_of(store, name, on_demand=True) for name in ("one", "other"))
    held = one.hold("acme")

    def let_go(tenant_id: str) -> None:
        assert one.claim(tenant_id, 0.0) is None
        assert store.leases == {"x/acme": held}, "what is saved last is saved under it"

    one.give_up("acme", let_go)
    assert one.claim("acme", 0.0) is None, "who asked for it is first"
    assert other.claim("acme", 0.0) is not None


def test_a_lease_that_nobody_took_who_asked_for_it_is_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "_KEPT_S", 0.0)
    one = leases_of(Store(), "one", on_demand=True)
    one.hold("acme")
    one.give_up("acme", lambda _tenant: None)
    assert one.claim("acme", 60.0) is not None
