"""Lending tenants: each is open once, whoever comes and goes."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest
from mneme_server.common import deadline
from mneme_server.common.errors import NotFound, ResourceExhausted, Unavailable
from mneme_server.engine.tenants import registry as registry_module
from mneme_server.engine.tenants.registry import TenantRegistry


class Memory:
    """Stands in for an open tenant: notices when it is open twice, or used after its end."""

    open_now: Counter[str]
    faults: list[str]

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.pending = 0
        self.memory_bytes = 100
        self.closed = False
        self.left = False
        Memory.open_now[tenant_id] += 1
        if Memory.open_now[tenant_id] > 1:
            Memory.faults.append(f"{tenant_id} is open twice")

    def close(self) -> None:
        time.sleep(0.0005)
        self.closed = True
        Memory.open_now[self.tenant_id] -= 1

    def wait_until_built(self) -> None:
        """It has its index from the beginning."""

    def leave(self, *, replaced: bool = False) -> None:
        self.left = True

    def stay(self) -> None:
        self.left = False


@pytest.fixture(autouse=True)
def _nothing_open() -> None:
    Memory.open_now = Counter()
    Memory.faults = []


def registry(**changed: object) -> TenantRegistry[Memory]:  # type: ignore[type-var]
    options = {"memory_bytes": 400, "idle_seconds": 60.0} | changed
    return TenantRegistry(Memory, **options)  # type: ignore[arg-type]


def wait_until(condition: object) -> None:
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.005)
    assert condition()  # type: ignore[operator]


def test_a_tenant_is_never_open_twice_however_many_come_and_go() -> None:
    tenants = registry(memory_bytes=200, idle_seconds=0.02)

    def come_and_go(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(300):
            with tenants.open(f"t{choose.randrange(8)}") as tenant:
                if tenant.closed:
                    Memory.faults.append("lent after it was closed")

    threads = [threading.Thread(target=come_and_go, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tenants.close()
    assert Memory.faults == []
    assert not any(Memory.open_now.values())


def test_beyond_the_memory_those_are_closed_that_were_used_longest_ago() -> None:
    tenants = registry(memory_bytes=200)
    for name in ("a", "b", "c"):
        with tenants.open(name):
            pass
    wait_until(lambda: not Memory.open_now["a"])
    assert (Memory.open_now["b"], Memory.open_now["c"]) == (1, 1)
    tenants.close()


def test_a_tenant_that_grows_has_others_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_MEASURED_EVERY_S", 0.0)
    tenants = registry(memory_bytes=500)
    for name in ("a", "b", "c"):
        with tenants.open(name) as tenant:
            pass
    assert tenants.held_bytes == 300
    with tenants.open("c"):
        tenant.memory_bytes = 450
    wait_until(lambda: not Memory.open_now["a"] and not Memory.open_now["b"])
    assert (Memory.open_now["c"], tenants.held_bytes) == (1, 450)
    tenants.close()
    assert tenants.held_bytes == 0


def test_a_tenant_that_takes_long_to_open_is_not_closed_between_its_calls() -> None:
    def slowly(tenant_id: str) -> Memory:
        time.sleep(1.0 if tenant_id == "large" else 0)  # It stays for nine seconds.
        memory = Memory(tenant_id)
        memory.memory_bytes = 1_000 if tenant_id == "large" else 100
        return memory

    tenants: TenantRegistry[Any] = TenantRegistry(slowly, memory_bytes=500, idle_seconds=60)  # type: ignore[arg-type]
    for name in ("large", "a", "b"):
        with tenants.open(name):
            pass
    wait_until(lambda: not Memory.open_now["a"])
    assert Memory.open_now["large"] == 1
    tenants.close()


def test_no_more_tenants_stay_open_than_there_may_be_files_for() -> None:
    tenants = registry(most=2)
    for name in ("a", "b", "c"):
        with tenants.open(name):
            pass
    wait_until(lambda: not Memory.open_now["a"])
    tenants.close()


def test_a_caller_waits_for_a_tenant_that_opens_no_longer_than_it_has_time() -> None:
    opening, may_open = threading.Event(), threading.Event()

    def stuck(tenant_id: str) -> Memory:
        opening.set()
        assert tenant_id != "a" or may_open.wait(20)
        return Memory(tenant_id)

    tenants: TenantRegistry[Any] = TenantRegistry(stuck, memory_bytes=500, idle_seconds=60)  # type: ignore[arg-type]
    first = threading.Thread(target=lambda: tenants.open("a").__enter__())
    first.start()
    assert opening.wait(20)
    with deadline.within(0.05), pytest.raises(deadline.Abandoned), tenants.open("a"):
        pass
    with tenants.open("b"):
        may_open.set()
    first.join()
    tenants.close()


def test_a_removal_waits_for_the_tenants_calls_no_longer_than_its_caller_does() -> None:
    tenants = registry()
    with tenants.open("a") as tenant:
        with (
            deadline.within(0.05),
            pytest.raises(deadline.Abandoned),
            tenants.removing("a", timeout_s=20),
        ):
            pass
        with tenants.open("a") as same:
            assert same is tenant
    tenants.close()


def test_what_fails_after_closing_one_tenant_does_not_reach_the_caller_of_another() -> None:
    def full(_tenant: str) -> None:
        raise ResourceExhausted("the disk is full")

    tenants = registry(memory_bytes=100, idle_seconds=0.02, on_closed=full)
    for _ in range(3):
        for name in ("a", "b"):
            with tenants.open(name):
                pass
        time.sleep(0.05)
    wait_until(lambda: not any(Memory.open_now.values()))  # The janitor lives on.
    tenants.close()


def test_a_removed_tenant_is_closed_and_cannot_be_opened() -> None:
    tenants = registry()
    with tenants.open("a") as tenant:
        pass
    with tenants.removing("a"):
        assert tenant.closed
        with pytest.raises(NotFound), tenants.open("a"):
            pass
        with pytest.raises(Unavailable), tenants.removing("a"):
            pass
    with tenants.open("a"):
        pass
    tenants.close()


def test_a_removal_that_gives_up_leaves_the_tenant_as_it_was() -> None:
    tenants = registry()
    with tenants.open("a") as tenant:
        with pytest.raises(Unavailable), tenants.removing("a", timeout_s=0.02):
            pass
        assert not tenant.left
        with tenants.open("a") as same:
            assert same is tenant
    tenants.close()


def test_nothing_is_lent_once_the_registry_closes() -> None:
    tenants = registry()
    with tenants.open("a"):
        pass
    tenants.close()
    assert not any(Memory.open_now.values())
    with pytest.raises(Unavailable), tenants.open("a"):
        pass
