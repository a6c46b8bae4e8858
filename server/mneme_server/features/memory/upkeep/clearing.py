"""Clearing what is kept to be faster, and giving back what deleted rows took."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.upkeep.files import TenantFolders
from mneme_server.features.memory.upkeep.model import Cache, Cleared

_DAY_S = 24 * 60 * 60

_SMALL_BYTES = 64 * 1024 * 1024
_WORTH_REWRITING = 0.01
"""Share of a database that is not small that deleted rows must have left where it can only be
rewritten whole: that takes as long as copying it three times."""

Clear = Callable[[str, float], int]
"""Forgets what is kept of a tenant, put there at least so many seconds ago; returns how much."""


@dataclass(frozen=True, slots=True)
class ClearCaches:
    """The use case: clear a tenant's caches."""

    tenants: OpenTenants[CorpusUnit]
    folders: TenantFolders
    caches: Mapping[Cache, Clear]

    def __call__(
        self, tenant_id: str, caches: Collection[Cache], *, older_days: float, vacuum: bool
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
