"""Work that is due while its tenant is closed."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from mneme_server.features.alerts.due import DueWorker

LATER = 2**60


class Catalog:
    """Keeps when tenants are due; counts the writes."""

    def __init__(self, **due: int) -> None:
        self.due = dict(due)
        self.writes = 0

    def all(self, work: str) -> Mapping[str, int]:
        return self.due

    def set(self, tenant_id: str, work: str, due_us: int | None) -> None:
        self.writes += 1
        if due_us is None:
            self.due.pop(tenant_id, None)
        else:
            self.due[tenant_id] = due_us

    def drop(self, tenant_id: str) -> None:
        self.due.pop(tenant_id, None)


class Worker(DueWorker):
    """Does nothing."""

    def step(self, tenant_id: str) -> int | None:
        return None


def tenant(tenant_id: str) -> Any:
    return SimpleNamespace(tenant_id=tenant_id)


def test_a_turn_is_noted_when_its_tenant_is_closed_and_nobody_need_open_it_at_the_start() -> None:
    catalog = Catalog()
    worker = Worker("work", catalog)
    worker.wake("a", LATER)
    assert worker.is_waiting("a")  # So that it would be opened at the start.
    worker.closing(tenant("a"))
    assert catalog.due == {"a": LATER}
    assert not worker.is_waiting("a")
    worker.closing(tenant("a"))
    worker.closing(tenant("b"))
    assert catalog.writes == 1


def test_what_comes_before_the_noted_turn_is_work_that_is_left() -> None:
    worker = Worker("work", Catalog())
    worker.wake("a", LATER)
    worker.closing(tenant("a"))
    worker.wake("a", LATER - 1)
    assert worker.is_waiting("a")


def test_a_server_that_starts_waits_for_the_noted_turns() -> None:
    worker = Worker("work", Catalog(a=LATER))
    worker.resume()
    assert worker.due_of("a") == LATER
    assert not worker.is_waiting("a")


def test_a_turn_that_is_no_longer_is_taken_off_the_catalog() -> None:
    catalog = Catalog(a=LATER)
    worker = Worker("work", catalog)
    worker._noted = {"a": LATER}  # As after a start, and the turn that followed.
    worker.closing(tenant("a"))
    assert catalog.due == {}
