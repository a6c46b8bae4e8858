"""The upkeep of a tenant's memory: made ready or empty, reported on, its caches cleared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Protocol

from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.common.identity import check_tenant_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.admin.ports import Backup
from mneme_server.features.memory.search import SearchMemories
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.memory.upkeep.model import (
    CacheKind,
    Cleared,
    DatabaseReport,
    Distribution,
    Embeddings,
    Index,
    MemoryReport,
    Sizes,
)

Clear = Callable[[str, float], int]
"""Forgets what is kept of a tenant, put there at least so many seconds ago; returns how much."""

AVERAGES = ("average_episode_reward", "average_skill_success_rate", "average_causal_confidence")
"""The figures that are averages; the others are counts."""
_MOST_NAMES = 100
_DAY_S = 24 * 60 * 60
_SMALL_BYTES = 64 * 1024 * 1024
_WORTH_REWRITING = 0.01
"""Share of a database that is not small that deleted rows must have left where it can only be
rewritten whole: that takes as long as copying it three times."""
_DATABASE = "mneme.db"
_INDEXES = ("index", "lexical")


class Emptying(Protocol):
    """Replaces what a tenant holds by nothing."""

    def empty(self, tenant_id: str) -> Backup:
        """Make the tenant's database an empty one; return a backup of what was there."""
        ...


@dataclass(frozen=True, slots=True)
class BeginMemory:
    """The use case: make a tenant's memory ready, and say what is there."""

    report: ReportMemory
    emptying: Emptying

    def begin(
        self, tenant_id: str, *, model: str, dimensions: int, reset: bool, confirmed: str
    ) -> tuple[MemoryReport, str]:
        """Return what is there, and the file name of the backup of what was there before, if it was
        reset.

        Raises:
            FailedPrecondition: DIMENSION_MISMATCH, the server's model is another.
            InvalidArgument: it is to be reset, and the tenant is not named.
        """
        self._require(model, dimensions)
        backup = ""
        if reset:
            if confirmed != tenant_id:
                raise InvalidArgument(
                    f"reset replaces all that the tenant {tenant_id} holds, also its events, by"
                    f" nothing; to confirm, set confirm_tenant_id to {tenant_id!r}",
                    field="confirm_tenant_id",
                )
            backup = PurePath(self.emptying.empty(tenant_id).path).name
        return self.report.report(tenant_id), backup

    def _require(self, model: str, dimensions: int) -> None:
        served = self.report.model
        wrong = model and not _names(model, served)
        if wrong or dimensions not in (0, self.report.dimensions):
            raise FailedPrecondition(
                f"the server's embedding model is {served}, of {self.report.dimensions} dimensions;"
                " MNEME_EMBEDDER chooses another, for all tenants",
                reason=Reason.DIMENSION_MISMATCH,
                field="model" if wrong else "dimension",
            )


def _names(model: str, served: str) -> bool:
    """Tell whether a model's name is that of the one served, or the part of it that people use."""
    return model.rpartition("/")[2].casefold() in served.casefold()


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


class VectorCacheStats(Protocol):
    """Tells of a tenant's part of the cache of vectors."""

    def of(self, tenant_id: str) -> tuple[int, int, int]:
        """Return entries, hits and misses."""
        ...


@dataclass(frozen=True, slots=True)
class ReportMemory:
    """The use case: say what a tenant's memory holds."""

    tenants: OpenTenants
    figures: Sequence[TenantFigure]
    folders: FolderSizes
    search: SearchMemories
    cached: VectorCacheStats
    model: str
    dimensions: int
    schema: str

    def report(
        self, tenant_id: str, *, distribution: bool = False, quality: bool = False
    ) -> MemoryReport:
        """Return what there is now; averages and frequencies only when they are asked for."""
        chosen = [one for one in self.figures if quality or one.name not in AVERAGES]
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                found = {one.name: one.value(unit) for one in chosen}
                frequent = _distribution(unit) if distribution else None
            counts = {
                name: int(value or 0) for name, value in found.items() if name not in AVERAGES
            }
            tenant.look_again()
            counts |= {"vectors": tenant.vector_count, "pending": tenant.pending}
            searches, searches_s = self.search.times.of(tenant_id)
            index = Index(
                tenant.index_mode, tenant.index_bytes, tenant.vector_bytes, searches, searches_s
            )
        return MemoryReport(
            database=DatabaseReport(
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


def _distribution(unit: CorpusUnit) -> Distribution:
    tags, tag_count = unit.get(SqlMemories).frequent_tags(_MOST_NAMES)
    keys, key_count = unit.get(SqlMemories).frequent_keys(_MOST_NAMES)
    return Distribution(tags, tag_count, keys, key_count)


@dataclass(frozen=True, slots=True)
class ClearCaches:
    """The use case: clear what is kept of a tenant to be faster, and give back what deleted rows
    took."""

    tenants: OpenTenants
    folders: FolderSizes
    caches: Mapping[CacheKind, Clear]

    def clear(
        self, tenant_id: str, caches: Collection[CacheKind], *, older_days: float, vacuum: bool
    ) -> Cleared:
        """Clear these, of what is at least so many days old; with `vacuum` have the
        database give back the room that deleted rows left: a small one is rewritten, another gives
        back its free pages.

        Raises:
            ResourceExhausted: the disk has no room to rewrite the database.
        """
        counts = {cache: self.caches[cache](tenant_id, older_days * _DAY_S) for cache in caches}
        if not vacuum:
            return Cleared(counts, None)
        with self.tenants.open(tenant_id) as tenant:
            before = self.folders.database_bytes(tenant_id)
            if before <= _SMALL_BYTES:
                tenant.rewrite()
            elif not tenant.compact(_WORTH_REWRITING):
                return Cleared(counts, None)
            after = self.folders.database_bytes(tenant_id)
        return Cleared(counts, max(0, before - after))


class FolderSizes:
    """Measures how much room the folders of tenants take on the disk.

    Args:
        root: the server's data folder.
        is_shared: tells whether a tenant is in a database that tenants share, instead of one in its
            folder.
        shared_bytes: returns about how many bytes a tenant takes there.
    """

    def __init__(
        self,
        root: Path,
        is_shared: Callable[[str], bool],
        shared_bytes: Callable[[str], int],
    ) -> None:
        self._root = root
        self._is_shared = is_shared
        self._shared_bytes = shared_bytes

    def engine_of(self, tenant_id: str) -> str:
        """Return what keeps a tenant: "sqlite" or "postgresql"."""
        return "postgresql" if self._is_shared(tenant_id) else "sqlite"

    def database_of(self, tenant_id: str) -> str:
        """Return where a tenant's database is, below the data folder; empty where it is not."""
        if self._is_shared(tenant_id):
            return ""
        return f"tenants/{check_tenant_id(tenant_id)}/{_DATABASE}"

    def sizes(self, tenant_id: str) -> Sizes:
        """Return how much a tenant takes now."""
        folder = self._root / "tenants" / check_tenant_id(tenant_id)
        is_shared = self._is_shared(tenant_id)
        shared = self._shared_bytes(tenant_id) if is_shared else 0
        return Sizes(
            database=shared if is_shared else self.database_bytes(tenant_id),
            indexes=sum(_size((folder / name).rglob("*")) for name in _INDEXES),
            folder=shared + _size(folder.rglob("*")),
        )

    def database_bytes(self, tenant_id: str) -> int:
        """Return how many bytes the database in the folder takes, with its log."""
        return _size((self._root / "tenants" / check_tenant_id(tenant_id)).glob(f"{_DATABASE}*"))


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # Snapshots and logs come and go.
            continue
    return total
