"""Feeds of tenants in use are looked at each time, those of others that are open a few in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mneme_server.common.fencing import Fence
from mneme_server.engine.cluster import cluster as following
from mneme_server.engine.cluster.cluster import Cluster
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.nodes import Erasure, Head
from mneme_server.engine.tenants.registry import TenantRegistry

MANY = 200


class Memory:
    """An open tenant, as far as it is followed."""

    generation, pending, memory_bytes = 1, 0, 1
    is_followed_closely = False

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.newest = Position(0, 0)

    def told(self, newest: Position, _asked_s: float) -> bool:
        self.newest, before = newest, self.newest
        return newest != before

    def wait_until_built(self) -> None:
        """It has its index from the beginning."""

    def close(self) -> None:
        """Nothing is open."""


class Store:
    """What all servers share: where the feeds are, and which of them were asked for."""

    lives_s = 60.0
    id = "here"

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.asked: list[set[str]] = []
        self.hears, self.tells, self.others = [False], [False], 0
        self.erasures = SimpleNamespace(
            mark_of=lambda _place: None, is_first=lambda: True, enter=lambda *_: None
        )

    def beat(self, _counts: Any) -> Any:
        return self.others, (), {}

    def hear(self, told: bool) -> None:
        self.hears.append(told)

    def listen(self, _seconds: float) -> bool:
        return self.tells.pop(0)

    def orphans(self) -> Sequence[str]:
        return ()

    def wanted(self) -> Sequence[str]:
        return ()

    def due(self) -> Sequence[Erasure]:
        return ()

    def take(self, name: str, tenant_id: str) -> Fence:
        return Fence(name, tenant_id, self.id, 1)

    def heads(self, tenants: Collection[str]) -> Sequence[Head]:
        self.asked.append(set(tenants))
        return [Head(one, Position(self.rows.get(one, 0), 0), 1) for one in tenants]


class Known:
    def get(self, tenant_id: str) -> object:
        return tenant_id

    def served(self, names: Collection[str]) -> Collection[str]:
        return names


@pytest.fixture
def tenants() -> Iterator[TenantRegistry[Any]]:
    opener: Callable[[str], Any] = Memory
    registry = TenantRegistry(opener, memory_bytes=10**9, idle_seconds=3600)
    yield registry
    registry.close()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def cluster(tmp_path: Path, store: Any, tenants: TenantRegistry[Any], told: list[str]) -> Cluster:
    return Cluster(
        store, tenants, tmp_path / "tenants", Known(),
        committed_elsewhere=told.append, look_after=lambda _: None, look_again=lambda: None,
    )  # fmt: skip


def look(cluster: Cluster, times: int = 1) -> None:
    for _ in range(times):
        cluster._hear(time.monotonic())


def opened(tenants: TenantRegistry[Any], count: int = MANY) -> set[str]:
    names = {f"t{number}" for number in range(count)}
    for name in names:
        with tenants.open(name):
            pass
    return names


def test_however_many_are_open_those_of_few_are_asked_for_at_once_and_all_in_turn(
    cluster: Cluster, store: Store, tenants: TenantRegistry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FOLLOWED_S", 0.0)
    names = opened(tenants)
    with ExitStack() as lent:
        lent.enter_context(tenants.open("t7"))
        look(cluster, MANY)
    assert all("t7" in asked for asked in store.asked)
    assert max(map(len, store.asked)) <= 1 + following._QUIET_AT_ONCE
    assert set().union(*store.asked) == names


def test_what_was_used_lately_is_asked_for_each_time(
    cluster: Cluster, store: Store, tenants: TenantRegistry[Any], told: list[str]
) -> None:
    names = opened(tenants)
    look(cluster)
    assert store.asked == [names]
    store.rows["t9"] = 3
    look(cluster)
    assert told == ["t9"]


def test_a_watched_tenant_that_is_closed_is_heard_of_once_for_each_write(
    cluster: Cluster, store: Store, told: list[str]
) -> None:
    cluster.also_follow(lambda: ["watched"])
    look(cluster)
    told.clear()  # What was written since the watch began cannot be known: it looks.
    look(cluster, 3)
    assert told == []
    store.rows["watched"] = 1
    look(cluster, 3)
    assert told == ["watched"]


def test_only_what_is_lent_or_was_lately_is_in_use(tenants: TenantRegistry[Any]) -> None:
    opened(tenants, 5)
    with tenants.open("t1"):
        assert {memory.tenant_id for memory in tenants.in_use(0.0)} == {"t1"}
        assert len(tenants.in_use(3600.0)) == 5
    with tenants.if_closed("t2"):  # It is looked at, not used.
        assert {memory.tenant_id for memory in tenants.in_use(0.0)} == set()


def test_a_server_may_take_leases_once_it_follows_however_long_ago_it_was_made(
    cluster: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_threads", [])
    cluster.leases.alive(time.monotonic() - store.lives_s)
    cluster.start()
    try:
        assert cluster.leases.hold("acme")
    finally:
        cluster.begin_stop()


@pytest.fixture
def ticking(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One that has looked at everything a moment ago, and does not rest."""
    monkeypatch.setattr(cluster._stopping, "wait", lambda _seconds: False)
    cluster._tick()
    return cluster


def test_between_looks_at_all_only_what_is_followed_closely_is_asked_for(
    ticking: Cluster, store: Store, tenants: TenantRegistry[Any]
) -> None:
    opened(tenants, 5)
    store.asked.clear()
    ticking._tick()
    assert store.asked == []
    with tenants.open("t3") as memory:
        memory.is_followed_closely = True
    ticking._tick()
    assert store.asked == [{"t3"}]


def test_after_half_a_second_all_that_are_in_use_are_asked_for(
    ticking: Cluster, store: Store, tenants: TenantRegistry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = opened(tenants, 5)
    monkeypatch.setattr(following, "SLOWLY_S", 0.0)
    store.asked.clear()
    ticking._tick()
    assert store.asked == [names]


def test_a_server_that_has_no_use_for_others_commits_is_not_told_of_them(
    ticking: Cluster, store: Store, tenants: TenantRegistry[Any]
) -> None:
    store.others = 1
    ticking._beat(time.monotonic())
    opened(tenants, 5)
    ticking._tick()
    assert not any(store.hears)
    ticking.leases.hold("t1")
    ticking._tick()
    assert store.hears[-1]


def test_what_another_server_tells_has_those_that_are_in_use_looked_at(
    ticking: Cluster, store: Store, tenants: TenantRegistry[Any]
) -> None:
    store.others, store.tells = 1, [True, False]
    ticking._beat(time.monotonic())
    ticking.leases.hold("t1")
    names = opened(tenants, 5)
    ticking._tick()
    store.asked.clear()
    ticking._tick()
    assert store.asked == [names]
