"""Tenants as folders: measuring, backing up and removing them.

`<data dir>/tenants/<tenant>/` holds `mneme.db` and the two indexes that can be rebuilt from it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

from mneme_server.admin.ports import Backup, TenantStats
from mneme_server.common.errors import DataLoss, NotFound, Reason, ResourceExhausted
from mneme_server.common.identity import check_tenant_id
from mneme_server.common.ids import new_id
from mneme_server.index.files import sync_folder
from mneme_server.runtime.opening import INDEX_FOLDERS, require_model
from mneme_server.runtime.registry import TenantRegistry
from mneme_server.storage.examination import first_damage
from mneme_server.storage.sqlite_store import FILE_NAME, SqliteTenantStore, file_sha256
from mneme_server.storage.unit import EmbeddingModel, TenantSchema, Unit

_EXAMINED_FOR_S = 30.0


class TenantFiles:
    """Measures, backs up and removes tenants' folders.

    Implements `TenantStatistics`, `TenantBackups` and `TenantFolders` of `admin.ports`.
    """

    def __init__(
        self,
        root: Path,
        backups: Path,
        registry: TenantRegistry[Unit],
        schema: TenantSchema,
        model: EmbeddingModel,
    ) -> None:
        self._root = root
        self._schema = schema
        self._backups = backups
        self._registry = registry
        self._model = model
        self._examining = threading.Lock()
        self._found: dict[str, tuple[float, DataLoss | None]] = {}

    def stats(self, tenant_id: str) -> TenantStats:
        """Count what the tenant holds."""
        with self._registry.open(tenant_id) as memory:
            with memory.read() as unit:
                totals = [
                    counted.total()
                    for counted in (unit.events, unit.sessions, unit.agents, unit.lessons)
                ]
                failed = unit.queue.failed()
            pending = memory.pending
            mode = memory.index_mode
            # The index knows without counting rows.
            documents, vectors = memory.document_count, memory.vector_count
        return TenantStats(
            event_count=totals[0],
            session_count=totals[1],
            agent_count=totals[2],
            lesson_count=totals[3],
            memory_count=documents,
            vector_count=vectors,
            pending_count=pending,
            failed_count=failed,
            disk_bytes=_size(self._root / tenant_id),
            dense_index=mode,
        )

    def backup(self, tenant_id: str) -> Backup:
        """Copy the tenant's database as it is now."""
        with self._registry.open(tenant_id):
            return self._copy(tenant_id)

    def _copy(self, tenant_id: str) -> Backup:
        target = self._backups / tenant_id / f"{new_id()}.db"
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")  # A crash must not leave half a file that looks whole.
        database = SqliteTenantStore(self._root / tenant_id, tenant_id, self._schema)
        try:
            _require_space(target.parent, database.path)
            database.copy_to(part)
        finally:
            database.close()
        part.rename(target)
        return Backup(str(target), target.stat().st_size, file_sha256(target))

    def restore(self, tenant_id: str, name: str) -> Backup:
        """Put a backup in the place of the tenant's database; return one of what was there."""
        source = self._backups / tenant_id / name
        if Path(name).name != name or not source.is_file():
            raise NotFound(f"tenant {tenant_id} has no backup {name}", field="backup")
        staged = self._backups / tenant_id / f".restoring-{new_id()}"
        staged.mkdir()
        try:
            _require_space(staged, source)
            shutil.copyfile(source, staged / FILE_NAME)
            self._check(staged, tenant_id, name)
            with self._registry.removing(tenant_id, replaced=True):
                before = self._keep(tenant_id)
                self._replace(self._root / tenant_id, staged / FILE_NAME)
            with self._examining:
                self._found.pop(tenant_id, None)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return before

    def _check(self, staged: Path, tenant_id: str, name: str) -> None:
        """Check that what would take the place is whole, and of the model that runs."""
        damaged = DataLoss(f"the backup {name} of tenant {tenant_id} is damaged")
        try:
            database = SqliteTenantStore(
                staged, tenant_id, self._schema
            )  # Migrates what an older version wrote.
        except DataLoss as error:
            raise damaged from error
        try:
            require_model(database, self._model, tenant_id)
            with database.write() as unit:  # What was said of another database is not true of it.
                unit.feed.renew_generation()
        finally:
            database.close()
        if first_damage(staged / FILE_NAME) is not None:
            raise damaged

    def _keep(self, tenant_id: str) -> Backup:
        """Back up what is about to be replaced; as it lies there when it cannot be read."""
        try:
            return self._copy(tenant_id)
        except DataLoss:
            folder = self._backups / tenant_id
            target = folder / f"{new_id()}.damaged.db"
            shutil.copyfile(self._root / tenant_id / FILE_NAME, target)
            return Backup(str(target), target.stat().st_size, file_sha256(target))

    def _replace(self, folder: Path, database: Path) -> None:
        """Make `database` the tenant's. Cut short anywhere, the folder holds one of the two."""
        for built in INDEX_FOLDERS:  # They belong to what was there, and are built from what is.
            shutil.rmtree(folder / built, ignore_errors=True)
        for log in ("-wal", "-shm"):
            (folder / f"{FILE_NAME}{log}").unlink(missing_ok=True)
        with database.open("rb") as written:
            os.fsync(written.fileno())
        database.replace(folder / FILE_NAME)
        sync_folder(folder)

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

    def remove(self, tenant_id: str) -> None:
        """Close the tenant and remove its folder; one that is gone is fine."""
        check_tenant_id(tenant_id)
        with self._registry.removing(tenant_id):
            folder = self._root / tenant_id
            if folder.exists():
                shutil.rmtree(folder)


def _require_space(folder: Path, database: Path) -> None:
    needed, free = database.stat().st_size, shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceExhausted(
            f"the backup needs {needed} bytes, the server's disk has {free}",
            reason=Reason.QUOTA_EXCEEDED,
            retry_after_s=60.0,
        )


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # Snapshots and logs come and go.
            continue
    return total
