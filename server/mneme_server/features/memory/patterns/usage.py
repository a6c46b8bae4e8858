"""How often patterns are used, counted without writing; see `engine.tenants.gathering`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.scheduling.turns import TenantWorker
from mneme_server.engine.tenants.gathering import Gathering
from mneme_server.features.memory.patterns.model import PatternStats, Use
from mneme_server.features.memory.patterns.ports import PatternsUnit


@dataclass(slots=True)
class _Uses:
    """Of one tenant's patterns, by id, since they were written."""

    by_pattern: dict[str, Use] = field(default_factory=dict)

    def add(self, more: _Uses) -> None:
        for pattern_id, use in more.by_pattern.items():
            self.by_pattern[pattern_id] = self.by_pattern.get(pattern_id, Use()) + use


def _write(unit: PatternsUnit, uses: _Uses) -> None:
    unit.patterns.count_uses(uses.by_pattern)


class PatternUsage:
    """The uses of all tenants' patterns that are not written yet. Thread-safe."""

    def __init__(self) -> None:
        self._gathering: Gathering[_Uses, PatternsUnit] = Gathering(_Uses, _write)

    def writer(self, tenants: OpenTenants[PatternsUnit]) -> TenantWorker:
        """Return what writes the uses."""
        return self._gathering.writer(tenants, "uses of patterns", "pattern-usage-writer")

    def write(self, tenant: OpenTenant[PatternsUnit]) -> None:
        """Write the tenant's uses."""
        self._gathering.write(tenant)

    def used(self, tenant_id: str, pattern_id: str, matches: int, took_s: float) -> None:
        """Count a search."""
        use = Use(1, matches, round(took_s * MICROSECONDS), now_us())
        self._gathering.add(tenant_id, _Uses({pattern_id: use}))

    def shown(self, tenant_id: str, stats: PatternStats) -> PatternStats:
        """Return statistics with the uses that are not written yet."""
        waiting = self._gathering.of(tenant_id, lambda uses: uses.by_pattern.get(stats.pattern.id))
        return replace(stats, use=sum(waiting, stats.use))
