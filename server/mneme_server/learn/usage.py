"""What was read, counted: gathered in memory, so that a call that reads does not write.

Counts are written every half minute, and before a tenant is closed; until then they are added to
what is shown. A crash loses those of the last half minute and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.counting import MAX_COUNT
from mneme_server.common.errors import NotFound
from mneme_server.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.learn.lesson_model import Access, Lesson
from mneme_server.learn.ports import LessonsUnit, ReflectionsUnit
from mneme_server.runtime.turns import TenantWorker

WRITTEN_EVERY_S = 30.0
"""How long counts wait in memory, in seconds: what a crash loses at most."""


class UsageUnit(LessonsUnit, ReflectionsUnit, Protocol):
    """One transaction, as far as counts of use are concerned."""


@dataclass(slots=True)
class _Gathered:
    """What one tenant's counts have moved by since they were written."""

    lessons: dict[str, Access] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, lessons: Mapping[str, Access], counters: Mapping[str, int]) -> None:
        for lesson_id, access in lessons.items():
            self.lessons[lesson_id] = access + self.lessons.get(lesson_id, Access())
        for name, count in counters.items():
            self.counters[name] = self.counters.get(name, 0) + count


class Usage:
    """The counts of use of all tenants that are not written yet. Thread-safe."""

    def __init__(self) -> None:
        self._gathered: dict[str, _Gathered] = {}
        self._being_written: dict[str, _Gathered] = {}
        self._lock = threading.Lock()
        self._writer: UsageWriter | None = None

    def writer(self, tenants: OpenTenants[UsageUnit]) -> UsageWriter:
        """Return what writes the counts, and is woken from now on when there are some."""
        self._writer = UsageWriter(tenants, self)
        return self._writer

    def lessons_read(self, tenant_id: str, lesson_ids: Collection[str]) -> None:
        """Count that these lessons, which exist, were returned."""
        now = now_us()
        self._add(tenant_id, {lesson_id: Access(1, now) for lesson_id in lesson_ids}, {})

    def counted(self, tenant_id: str, counts: Mapping[str, int]) -> None:
        """Add to the tenant's counters."""
        self._add(tenant_id, {}, counts)

    def shown(self, tenant_id: str, lesson: Lesson) -> Lesson:
        """Return the lesson with the accesses that are not written yet."""
        access = self._waiting(tenant_id).lessons.get(lesson.id)
        if access is None:
            return lesson
        return replace(
            lesson,
            access_count=min(lesson.access_count + access.times, MAX_COUNT),
            last_accessed_us=max(lesson.last_accessed_us or 0, access.last_us),
        )

    def counters(self, tenant_id: str, stored: Mapping[str, int]) -> dict[str, int]:
        """Return the tenant's counters with what is not written yet."""
        together = _Gathered(counters=dict(stored))
        together.add({}, self._waiting(tenant_id).counters)
        return together.counters

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has counts to write."""
        with self._lock:
            return tenant_id in self._gathered or tenant_id in self._being_written

    def write(self, tenant: OpenTenant[UsageUnit]) -> None:
        """Write the tenant's counts."""
        tenant_id = tenant.tenant_id
        with self._lock:
            gathered = self._gathered.pop(tenant_id, None)
            if gathered is None:
                return
            self._being_written[tenant_id] = gathered  # Still shown.
        try:
            with tenant.write() as unit:
                unit.lessons.count_accesses(gathered.lessons)
                unit.counters.add(gathered.counters)
        except BaseException:
            with self._lock:
                waiting = self._gathered.setdefault(tenant_id, _Gathered())
                waiting.add(gathered.lessons, gathered.counters)
            raise
        finally:
            with self._lock:
                del self._being_written[tenant_id]

    def forget(self, tenant_id: str) -> None:
        """Forget the counts of a tenant that is gone."""
        with self._lock:
            self._gathered.pop(tenant_id, None)

    def _waiting(self, tenant_id: str) -> _Gathered:
        """Return what is not written yet."""
        found = _Gathered()
        with self._lock:
            for place in (self._gathered, self._being_written):
                if tenant_id in place:
                    found.add(place[tenant_id].lessons, place[tenant_id].counters)
        return found

    def _add(
        self, tenant_id: str, lessons: Mapping[str, Access], counters: Mapping[str, int]
    ) -> None:
        if not lessons and not counters:
            return
        with self._lock:
            first = tenant_id not in self._gathered
            self._gathered.setdefault(tenant_id, _Gathered()).add(lessons, counters)
        if first and self._writer is not None:
            self._writer.wake(tenant_id, now_us() + int(WRITTEN_EVERY_S * MICROSECONDS))


class UsageWriter(TenantWorker):
    """Writes the counts of each tenant that has some, a while after the first of them."""

    def __init__(self, tenants: OpenTenants[UsageUnit], usage: Usage) -> None:
        super().__init__("usage", "usage-writer")
        self._tenants = tenants
        self._usage = usage

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has counts to write: closing it has written them."""
        return self._usage.is_waiting(tenant_id)

    def step(self, tenant_id: str) -> int | None:
        """Write the tenant's counts, if there are any."""
        if self._usage.is_waiting(tenant_id):
            try:
                with self._tenants.open(tenant_id) as tenant:
                    self._usage.write(tenant)
            except NotFound:
                self._usage.forget(tenant_id)
        return None
