"""Lending tenants: each is open once, whoever comes and goes."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import pytest
from mneme_server.common.errors import NotFound, ResourceExhausted, Unavailable
from mneme_server.runtime.registry import TenantRegistry


class Memory:
    """Stands in for an open tenant: notices when it is open twice, or used after its end."""

    open_now: Counter[str]
    faults: list[str]

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.pending = 0
        self.closed = False
        self.left = False
        Memory.open_now[tenant_id] += 1
        if Memory.open_now[tenant_id] > 1:
            Memory.faults.append(f"{tenant_id} is open twice")

    def close(self) -> None:
        time.sleep(0.0005)
        self.closed = True
        Memory.open_now[self.tenant_id] -= 1

    def leave(self, *, replaced: bool = False) -> None:
        self.left = True

    def stay(self) -> None:
        self.left = False


@pytest.fixture(autouse=True)
def _nothing_open() -> None:
    Memory.open_now = Counter()
    Memory.faults = []


def registry(**changed: object) -> TenantRegistry[Memory]:  # type: ignore[type-var]
    options = {"max_open": 4, "idle_seconds": 60.0} | changed
    return TenantRegistry(Memory, **options)  # type: ignore[arg-type]


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.005)
    assert condition()  # type: ignore[operator]


def test_a_tenant_is_never_open_twice_however_many_come_and_go() -> None:
    tenants = registry(max_open=2, idle_seconds=0.02)

    def come_and_go(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(300):
            with tenants.open(f"t{choose.randrange(8)}") as memory:
                if memory.closed:
                    Memory.faults.append("lent after it was closed")

    threads = [threading.Thread(target=come_and_go, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tenants.close()
    assert Memory.faults == []
    assert not any(Memory.open_now.values())


def test_more_than_the_limit_are_closed_the_least_recently_used_first() -> None:
    tenants = registry(max_open=2)
    for name in ("a", "b", "c"):
        with tenants.open(name):
            pass
    wait_until(lambda: not Memory.open_now["a"])
    assert (Memory.open_now["b"], Memory.open_now["c"]) == (1, 1)
    tenants.close()


def test_what_fails_after_closing_one_tenant_does_not_reach_the_caller_of_another() -> None:
    def full(_tenant: str) -> None:
        raise ResourceExhausted("the disk is full")

    tenants = registry(max_open=1, idle_seconds=0.02, on_closed=full)
    for _ in range(3):
        for name in ("a", "b"):
            with tenants.open(name):
                pass
        time.sleep(0.05)
    wait_until(lambda: not any(Memory.open_now.values()))  # The janitor lives on.
    tenants.close()


def test_a_removed_tenant_is_closed_and_cannot_be_opened() -> None:
    tenants = registry()
    with tenants.open("a") as memory:
        pass
    with tenants.removing("a"):
        assert memory.closed
        with pytest.raises(NotFound), tenants.open("a"):
            pass
        with pytest.raises(Unavailable), tenants.removing("a"):
            pass
    with tenants.open("a"):
        pass
    tenants.close()


def test_a_removal_that_gives_up_leaves_the_tenant_as_it_was() -> None:
    tenants = registry()
    with tenants.open("a") as memory:
        with pytest.raises(Unavailable), tenants.removing("a", timeout_s=0.02):
            pass
        assert not memory.left
        with tenants.open("a") as same:
            assert same is memory
    tenants.close()


def test_nothing_is_lent_once_the_registry_closes() -> None:
    tenants = registry()
    with tenants.open("a"):
        pass
    tenants.close()
    assert not any(Memory.open_now.values())
    with pytest.raises(Unavailable), tenants.open("a"):
        pass
