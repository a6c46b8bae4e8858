"""Tenants as folders, measured and removed, and the backups of their databases.

`<data dir>/tenants/<tenant>/` holds `mneme.db` and the two indexes that can be rebuilt from it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import Table
from ulid import ULID

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import (
    DataLoss,
    FailedPrecondition,
    MnemeError,
    NotFound,
    Reason,
    ResourceExhausted,
)
from mneme_server.common.identity import check_tenant_id, new_id
from mneme_server.common.progress import Cancelled, Silent, Step
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.index.files import sync_folder
from mneme_server.engine.runtime import Runtime
from mneme_server.engine.store.examination import first_damage
from mneme_server.engine.store.schema import metadata
from mneme_server.engine.store.sqlite_store import FILE_NAME, SqliteTenantStore
from mneme_server.engine.store.tenant_copy import number_after, numbers
from mneme_server.engine.store.totals import SqlTotals
from mneme_server.engine.store.unit import Unit
from mneme_server.engine.tenants.opener import INDEX_FOLDERS, require_model
from mneme_server.engine.tenants.registry import TenantRegistry
from mneme_server.features.admin.ports import Backup, TenantStats

_EXAMINED_FOR_S = 30.0
_COUNTED = ("events", "sessions", "agents", "lessons")
_COPIES = "mneme_server.engine.store.copies"


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
                totals = [unit.get(SqlTotals).of(name) for name in _COUNTED]
                failed = unit.queue.failed()
            tenant.look_again()
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


class BackupFiles:
    """Backups of tenants' databases: made, and put back. Implements
    `features.admin.ports.TenantBackups`.

    `<data dir>/backups/<tenant>/` holds them, and what is being put back in folders of their own.

    Args:
        root: the folder of the tenants' folders.
        backups: the folder of the folders of their backups.
        runtime: the open tenants, what they are made of, and what embeds them.
        require_tenant: raises NotFound where there is no such tenant.
        replaced: told of a tenant whose database was replaced.
        place_of: tells which other database a tenant was moved to; empty where to none.
    """

    def __init__(
        self,
        root: Path,
        backups: Path,
        runtime: Runtime,
        *,
        require_tenant: Callable[[str], object],
        replaced: Callable[[str], None],
        place_of: Callable[[str], str] = lambda _tenant: "",
    ) -> None:
        self._root = root
        self._place_of = place_of
        self._backups = backups
        self._registry = runtime.tenants
        self._schema = runtime.schema
        self._model = runtime.model
        self._require_tenant = require_tenant
        self._replaced = replaced
        self._applied: list[Callable[[str, SqliteTenantStore], object]] = []

    def also_apply(self, change: Callable[[str, SqliteTenantStore], object]) -> None:
        """Have this called with each backup that is put back, before it takes a tenant's place."""
        self._applied.append(change)

    def made_before(self, tenant_id: str, time_us: int) -> Sequence[str]:
        """Return the names of the tenant's backups that may hold what it held at a time."""
        names = sorted(path.name for path in (self._backups / tenant_id).glob("*.db"))
        return [name for name in names if _made_us(name) <= time_us]

    def require_file(self, tenant_id: str) -> None:
        """Check that the tenant has a database of its own."""
        self._require_file(tenant_id, "making backups")

    def backup(self, tenant_id: str, step: Step, name: str) -> Backup:
        """Copy the tenant's database as it is now."""
        self.require_file(tenant_id)
        with self._registry.open(tenant_id):
            return self._copy(tenant_id, step, name)

    def discard_part(self, tenant_id: str, name: str) -> None:
        """Remove what was copied for a backup that was cut short."""
        self._part(tenant_id, name).unlink(missing_ok=True)

    def require(self, tenant_id: str, name: str) -> None:
        """Check that the tenant has a backup of this file name, and can be restored."""
        self._require_file(tenant_id, "restoring backups")
        if Path(name).name != name or not (self._backups / tenant_id / name).is_file():
            raise NotFound(f"tenant {tenant_id} has no backup {name}", field="backup")

    def stage(self, tenant_id: str, name: str, staged: str, step: Step) -> None:
        """Copy the backup of this file name to `staged`, and see that it can take the place."""
        self.require(tenant_id, name)
        source = self._backups / tenant_id / name
        self.discard(tenant_id, staged)
        folder = self._staged(tenant_id, staged)
        folder.mkdir()
        try:
            _require_space(folder, source)
            target = folder / FILE_NAME
            step.apart(f"{_COPIES}:duplicate", source=str(source), target=str(target))
            self._check(folder, tenant_id, name, step)
        except BaseException:
            self.discard(tenant_id, staged)
            raise

    def empty(self, tenant_id: str) -> Backup:
        """Make the tenant's database an empty one; return a backup of what was there."""
        self._require_file(tenant_id, "resetting a tenant's memory")
        staged = new_id()
        folder = self._staged(tenant_id, staged)
        folder.mkdir(parents=True)
        try:
            database = SqliteTenantStore(folder, tenant_id, self._schema)
            try:
                require_model(database, self._model, tenant_id)
            finally:
                database.close()
        except BaseException:
            self.discard(tenant_id, staged)
            raise
        return self._replace(tenant_id, staged, lambda _before: None)

    def replace(self, tenant_id: str, staged: str, commit: Callable[[Backup], None]) -> Backup:
        """Put what was staged in the place of the tenant's database; return a backup of what was
        there. `commit` is told of that, before anything is replaced; it may raise to stop it."""

        def apply_and_commit(before: Backup) -> None:
            # Something may have been forgotten since it was staged; now nobody has the tenant.
            database = SqliteTenantStore(self._staged(tenant_id, staged), tenant_id, self._schema)
            try:
                self._apply(tenant_id, database)
            finally:
                database.close()
            commit(before)

        return self._replace(tenant_id, staged, apply_and_commit)

    def _apply(self, tenant_id: str, database: SqliteTenantStore) -> None:
        for apply in self._applied:
            apply(tenant_id, database)

    def _replace(self, tenant_id: str, staged: str, commit: Callable[[Backup], None]) -> Backup:
        try:
            with self._registry.removing(tenant_id, replaced=True):
                self._require_tenant(tenant_id)  # It may have been deleted since this began,
                self._require_file(tenant_id, "restoring backups")  # or moved.
                # One that nobody has used yet has no folder.
                (self._root / tenant_id).mkdir(parents=True, exist_ok=True)
                before = self._keep(tenant_id)
                try:
                    self._number_after(tenant_id, staged)
                    commit(before)
                except (Cancelled, MnemeError):
                    Path(before.path).unlink(missing_ok=True)
                    raise
                self._put(tenant_id, staged)
            self._replaced(tenant_id)
        finally:
            self.discard(tenant_id, staged)
        return before

    def _number_after(self, tenant_id: str, staged: str) -> None:
        """Have no row get a number again that one had which is replaced: whoever goes on from such
        a number, as watches do, would miss what has it then."""
        try:
            with closing(
                SqliteTenantStore(self._root / tenant_id, tenant_id, self._schema)
            ) as replaced:
                last = numbers(replaced)
        except DataLoss:  # It is put back because of that.
            return
        with closing(
            SqliteTenantStore(self._staged(tenant_id, staged), tenant_id, self._schema)
        ) as taking_its_place:
            number_after(taking_its_place, last)

    def finish_replacing(self, tenant_id: str, staged: str) -> None:
        """Do what a crash left undone after `commit`: nothing, if all of it was done."""
        if (self._staged(tenant_id, staged) / FILE_NAME).exists():
            self._put(tenant_id, staged)
        self.discard(tenant_id, staged)

    def discard(self, tenant_id: str, staged: str) -> None:
        """Remove what was staged."""
        shutil.rmtree(self._staged(tenant_id, staged), ignore_errors=True)

    def _require_file(self, tenant_id: str, what: str) -> None:
        if self._place_of(tenant_id):
            raise _not_here(what)

    def _staged(self, tenant_id: str, staged: str) -> Path:
        return self._backups / tenant_id / f".restoring-{staged}"

    def _part(self, tenant_id: str, name: str) -> Path:
        # A crash must not leave half a file that looks whole.
        return (self._backups / tenant_id / name).with_suffix(".part")

    def _copy(self, tenant_id: str, step: Step, name: str = "") -> Backup:
        target = self._backups / tenant_id / (name or f"{new_id()}.db")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():  # It does when a crash came between its making and its telling.
            part = self._part(tenant_id, target.name)
            part.unlink(missing_ok=True)
            try:
                database = SqliteTenantStore(self._root / tenant_id, tenant_id, self._schema)
                try:
                    _require_space(target.parent, database.path)
                    database.copy_to(part, step)
                finally:
                    database.close()
                sha256 = step.apart(f"{_COPIES}:digest", path=str(part))
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            _sync(part)
            part.rename(target)
            sync_folder(target.parent)
        else:
            sha256 = step.apart(f"{_COPIES}:digest", path=str(target))
        return Backup(str(target), target.stat().st_size, sha256)

    def _check(self, folder: Path, tenant_id: str, name: str, step: Step) -> None:
        """Check that what would take the place is whole, and of the model that runs."""
        damaged = DataLoss(f"the backup {name} of tenant {tenant_id} is damaged")
        step.report("checking")
        try:
            # Migrates what an older version wrote.
            database = SqliteTenantStore(folder, tenant_id, self._schema)
        except DataLoss as error:
            raise damaged from error
        try:
            require_model(database, self._model, tenant_id)
            with database.write() as unit:  # What was said of another database is not true of it.
                unit.feed.renew_generation()
            self._apply(tenant_id, database)
        finally:
            database.close()
        modules = modules_of_tables()
        path = str(folder / FILE_NAME)
        if step.apart(f"{_COPIES}:damage", path=path, modules=modules):
            raise damaged

    def _keep(self, tenant_id: str) -> Backup:
        """Back up what is about to be replaced; as it lies there when it cannot be read."""
        try:
            return self._copy(tenant_id, Silent())
        except DataLoss:
            target = self._backups / tenant_id / f"{new_id()}.damaged.db"
            shutil.copyfile(self._root / tenant_id / FILE_NAME, target)
            sha256 = Silent().apart(f"{_COPIES}:digest", path=str(target))
            return Backup(str(target), target.stat().st_size, sha256)

    def _put(self, tenant_id: str, staged: str) -> None:
        """Make what was staged the tenant's. Cut short anywhere, the folder holds one of the two:
        the log of the database that was there is empty, since it was closed."""
        folder, database = self._root / tenant_id, self._staged(tenant_id, staged) / FILE_NAME
        for built in INDEX_FOLDERS:  # They belong to what was there, and are built from what is.
            shutil.rmtree(folder / built, ignore_errors=True)
        for log in ("-wal", "-shm"):
            (folder / f"{FILE_NAME}{log}").unlink(missing_ok=True)
        _sync(database)
        database.replace(folder / FILE_NAME)
        sync_folder(folder)


class NoBackups(BackupFiles):
    """Refuses what would need a tenant's own file, where all tenants share a database."""

    def require_file(self, tenant_id: str) -> None:
        """Refuse."""
        raise _not_here("making backups")

    def backup(self, tenant_id: str, step: Step, name: str) -> Backup:
        """Refuse."""
        raise _not_here("making backups")

    def require(self, tenant_id: str, name: str) -> None:
        """Refuse."""
        raise _not_here("restoring backups")

    def stage(self, tenant_id: str, name: str, staged: str, step: Step) -> None:
        """Refuse."""
        raise _not_here("restoring backups")

    def empty(self, tenant_id: str) -> Backup:
        """Refuse."""
        raise _not_here("resetting a tenant's memory")


def _not_here(what: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"{what} is not supported yet where PostgreSQL keeps the tenants; its own backups hold all"
        " of them",
        reason=Reason.DATABASE_ERROR,
    )


def modules_of_tables() -> list[str]:
    """Return the modules that declare the tables of a tenant's database; a server has loaded
    them."""
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if name.startswith("mneme_server.") and ".store" in name
        if any(isinstance(one, Table) and one.metadata is metadata for one in vars(module).values())
    )


def _made_us(name: str) -> int:
    """Return when a backup was begun, as its name tells; 0 where somebody else named it."""
    try:
        return int(ULID.from_str(name.partition(".")[0]).timestamp * MICROSECONDS)
    except ValueError:
        return 0


def _sync(file: Path) -> None:
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _require_space(folder: Path, database: Path) -> None:
    needed, free = database.stat().st_size, shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceExhausted(
            f"the backup needs {needed} bytes, the server's disk has {free}",
            reason=Reason.QUOTA_EXCEEDED,
            retry_after_s=60.0,
        )
