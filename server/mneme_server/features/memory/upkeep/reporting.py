"""Saying what a tenant's memory holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.memory.ports import MemoriesUnit
from mneme_server.features.memory.searching import SearchMemories
from mneme_server.features.memory.upkeep.files import TenantFolders
from mneme_server.features.memory.upkeep.model import (
    Database,
    Distribution,
    Embeddings,
    Index,
    Report,
)

AVERAGES = ("average_episode_reward", "average_skill_success_rate", "average_causal_confidence")
"""The figures that are averages; the others are counts."""
_MOST_NAMES = 100


class TenantFigure(Protocol):
    """A figure of a tenant; see `capability.Figure`."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def value(self) -> Callable[[Any], float | None]:
        """Reads it in a transaction."""
        ...


class Cached(Protocol):
    """Tells of a tenant's part of the cache of vectors."""

    def of(self, tenant_id: str) -> tuple[int, int, int]:
        """Return entries, hits and misses."""
        ...


@dataclass(frozen=True, slots=True)
class ReportMemory:
    """The use case: say what a tenant's memory holds."""

    tenants: OpenTenants[MemoriesUnit]
    figures: Sequence[TenantFigure]
    folders: TenantFolders
    search: SearchMemories
    cached: Cached
    model: str
    dimensions: int
    schema: str

    def __call__(
        self, tenant_id: str, *, distribution: bool = False, quality: bool = False
    ) -> Report:
        """Return what there is now; averages and frequencies only when they are asked for."""
        chosen = [one for one in self.figures if quality or one.name not in AVERAGES]
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                found = {one.name: one.value(unit) for one in chosen}
                frequent = _distribution(unit) if distribution else None
            counts = {
                name: int(value or 0) for name, value in found.items() if name not in AVERAGES
            }
            counts |= {"vectors": tenant.vector_count, "pending": tenant.pending}
            searches, searches_s = self.search.times.of(tenant_id)
            index = Index(
                tenant.index_mode, tenant.index_bytes, tenant.vector_bytes, searches, searches_s
            )
        return Report(
            database=Database(
                tenant_id,
                self.folders.engine_of(tenant_id),
                self.folders.database_of(tenant_id),
                self.folders.sizes(tenant_id),
                self.schema,
            ),
            counts=counts,
            embeddings=Embeddings(self.model, self.dimensions, *self.cached.of(tenant_id)),
            index=index,
            averages={name: value for name, value in found.items() if name in AVERAGES},
            distribution=frequent,
        )


def _distribution(unit: MemoriesUnit) -> Distribution:
    tags, tag_count = unit.remembered.frequent_tags(_MOST_NAMES)
    keys, key_count = unit.remembered.frequent_keys(_MOST_NAMES)
    return Distribution(tags, tag_count, keys, key_count)
