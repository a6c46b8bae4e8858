"""Counts of what was read of lessons and reflections, kept without writing; see
`engine.tenants.count_buffer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mneme_server.common.clock import now_us
from mneme_server.common.counting import MAX_COUNT
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.tenants.count_buffer import CountBuffer
from mneme_server.features.learn.model import Access, Lesson
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.store.reflections import SqlCounters


@dataclass(slots=True)
class _UsageCounts:
    """What one tenant's counts have moved by since they were written."""

    lessons: dict[str, Access] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, more: _UsageCounts) -> None:
        for lesson_id, access in more.lessons.items():
            self.lessons[lesson_id] = access + self.lessons.get(lesson_id, Access())
        for name, count in more.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count


def _write(unit: CorpusUnit, counts: _UsageCounts) -> None:
    unit.get(SqlLessons).count_accesses(counts.lessons)
    unit.get(SqlCounters).add(counts.counters)


class Usage:
    """The counts of use of all tenants that are not written yet. Thread-safe."""

    def __init__(self) -> None:
        self._gathering: CountBuffer[_UsageCounts, CorpusUnit] = CountBuffer(_UsageCounts, _write)

    def writer(self, tenants: OpenTenants) -> TenantWorker:
        """Return what writes the counts."""
        return self._gathering.writer(tenants, "usage", "usage-writer")

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has counts that are not written yet."""
        return self._gathering.is_waiting(tenant_id)

    def write(self, tenant: OpenTenant) -> None:
        """Write the tenant's counts."""
        self._gathering.write(tenant)

    def lessons_read(self, tenant_id: str, lesson_ids: Collection[str]) -> None:
        """Count that these lessons, which exist, were returned."""
        if lesson_ids:
            now = now_us()
            accesses = {lesson_id: Access(1, now) for lesson_id in lesson_ids}
            self._gathering.add(tenant_id, _UsageCounts(lessons=accesses))

    def counted(self, tenant_id: str, counts: Mapping[str, int]) -> None:
        """Add to the tenant's counters."""
        if counts:
            self._gathering.add(tenant_id, _UsageCounts(counters=dict(counts)))

    def shown(self, tenant_id: str, lesson: Lesson) -> Lesson:
        """Return the lesson with the accesses that are not written yet."""
        accesses = self._gathering.of(tenant_id, lambda counts: counts.lessons.get(lesson.id))
        if not accesses:
            return lesson
        access = sum(accesses, Access())
        return replace(
            lesson,
            access_count=min(lesson.access_count + access.times, MAX_COUNT),
            last_accessed_us=max(lesson.last_accessed_us or 0, access.last_us),
        )

    def counters(self, tenant_id: str, stored: Mapping[str, int]) -> dict[str, int]:
        """Return the tenant's counters with what is not written yet."""
        together = _UsageCounts(counters=dict(stored))
        together.add(self._gathering.waiting(tenant_id))
        return together.counters
