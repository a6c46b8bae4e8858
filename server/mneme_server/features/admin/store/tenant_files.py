"""Tenants as folders: measuring and removing them.

`<data dir>/tenants/<tenant>/` holds `mneme.db` and the two indexes that can be rebuilt from it.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mneme_server.common.errors import DataLoss
from mneme_server.common.identity import check_tenant_id
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.store.examination import first_damage
from mneme_server.engine.store.sqlite_store import FILE_NAME
from mneme_server.engine.store.unit import Unit
from mneme_server.engine.tenants.registry import TenantRegistry
from mneme_server.features.admin.ports import TenantStats

_EXAMINED_FOR_S = 30.0


class TenantFiles:
    """Measures and removes tenants' folders.

    Implements `TenantStatistics` and `TenantFolders` of `features.admin.ports`.
    """

    def __init__(
        self, root: Path, registry: TenantRegistry[Unit], stores: TenantStores[Unit]
    ) -> None:
        self._root = root
        self._stores = stores
        self._registry = registry
        self._examining = threading.Lock()
        self._found: dict[str, tuple[float, DataLoss | None]] = {}

    def stats(self, tenant_id: str) -> TenantStats:
        """Count what the tenant holds."""
        with self._registry.open(tenant_id) as tenant:
            with tenant.read() as unit:
                totals = [
                    counted.total()
                    for counted in (unit.events, unit.sessions, unit.agents, unit.lessons)
                ]
                failed = unit.queue.failed()
            pending = tenant.pending
            mode = tenant.index_mode
            # The index knows without counting rows.
            documents, vectors = tenant.document_count, tenant.vector_count
        return TenantStats(
            event_count=totals[0],
            session_count=totals[1],
            agent_count=totals[2],
            lesson_count=totals[3],
            memory_count=documents,
            vector_count=vectors,
            pending_count=pending,
            failed_count=failed,
            disk_bytes=_size(self._root / tenant_id) + self._stores.shared_bytes(tenant_id),
            dense_index=mode,
        )

    def forget_damage(self, tenant_id: str) -> None:
        """Forget what was found in the tenant's database: another took its place."""
        with self._examining:
            self._found.pop(tenant_id, None)

    def damage(self, tenant_id: str) -> DataLoss | None:
        """Return the first damage found in the tenant's database; None when there seems to be none.

        Reads all of it, for some seconds at most, and keeps to what it found for a while: whatever
        asks again and again must not keep the server busy.
        """
        database = self._root / check_tenant_id(tenant_id) / FILE_NAME
        with self._examining:
            until, found = self._found.get(tenant_id, (0.0, None))
            if time.monotonic() >= until:
                found = first_damage(database) if database.exists() else None
                self._found[tenant_id] = (time.monotonic() + _EXAMINED_FOR_S, found)
        return found

    def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
        """Close the tenant and remove what it has; one that is gone is fine."""
        check_tenant_id(tenant_id)
        with self._registry.removing(tenant_id):
            self._stores.remove(tenant_id, require)
            folder = self._root / tenant_id
            if folder.exists():
                shutil.rmtree(folder)
        self.forget_damage(tenant_id)  # Another may come to have its name.


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # Snapshots and logs come and go.
            continue
    return total
