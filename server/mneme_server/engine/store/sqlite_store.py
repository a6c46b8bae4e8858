"""A tenant's store on SQLite: a file in its folder, opened, migrated, and read in units."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from mneme_server.common.identity import check_tenant_id
from mneme_server.common.progress import Step
from mneme_server.engine.corpus.ports import CorpusSource
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.corpus_source import SqlCorpusSource
from mneme_server.engine.store.engine import SqliteDatabase, address_of, domain_error
from mneme_server.engine.store.guard import require_tenant
from mneme_server.engine.store.migrate import migrate
from mneme_server.engine.store.schema import metadata
from mneme_server.engine.store.unit import TenantSchema, Unit

FILE_NAME = "mneme.db"
_COPIED_PAGES = 1024
"""Copied at once, in some milliseconds."""


class SqliteStores:
    """Implements `engine.corpus.tenant_store.TenantStores[Unit]`: a file in a folder for each
    tenant.

    Args:
        root: the folder that holds the tenants' folders; these are made when they are missing.
        schema: what a tenant's database is made of.
    """

    def __init__(self, root: Path, schema: TenantSchema) -> None:
        self._root = root
        self._schema = schema

    def open(self, tenant_id: str) -> SqliteTenantStore:
        """Open the tenant's database."""
        folder = self._root / check_tenant_id(tenant_id)
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteTenantStore(folder, tenant_id, self._schema)

    def holds(self, tenant_id: str) -> bool:
        """See `TenantStores`."""
        return (self._root / check_tenant_id(tenant_id) / FILE_NAME).exists()

    def shared_bytes(self, tenant_id: str) -> int:
        """See `TenantStores`: each has a file."""
        return 0

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        """See `TenantStores`."""
        require()
        for suffix in ("", "-wal", "-shm"):
            file = self._root / check_tenant_id(tenant_id) / f"{FILE_NAME}{suffix}"
            file.unlink(missing_ok=True)


class SqliteTenantStore:
    """Implements `engine.corpus.tenant_store.TenantStore[Unit]`.

    Args:
        folder: the tenant's folder; it must exist.
        tenant_id: the tenant.
        schema: what the database is made of.

    Raises:
        FailedPrecondition: a newer version made the database, or it is damaged.
    """

    def __init__(self, folder: Path, tenant_id: str, schema: TenantSchema) -> None:
        self.path = folder / FILE_NAME
        self._tenant_id = tenant_id
        self._schema = schema
        # Two resting connections a tenant: thousands of tenants must not hold many files open.
        self._database = SqliteDatabase(self.path, readers=2)
        try:
            migrate(self._database, *schema.migrations)
        except BaseException:
            self._database.close()
            raise
        for engine in (self._database.writer, self._database.reader):
            require_tenant(engine, metadata.tables.keys(), lambda _connection: tenant_id)
        self.source = SqlCorpusSource(self._database, tenant_id, schema.kinds.by_name)
        self.scan = None  # The index lies beside it.

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that the connections' caches may hold."""
        return self._database.cache_bytes

    @contextmanager
    def read(self) -> Iterator[Unit]:
        """Open a read transaction: one consistent snapshot."""
        with self._database.read() as connection:
            yield Unit(connection, self._tenant_id, self._schema)

    def note_changes(self) -> None:
        """Note from now on which rows change, for who copies them; see `SqlChangedRows`."""
        with self.write() as unit:
            unit.changed_rows.begin()

    def notes_changes(self) -> bool:
        """Tell whether that is noted, and was since `note_changes`: not where a backup took the
        place of what was there."""
        with self.read() as unit:
            return unit.changed_rows.there()

    def end_notes(self) -> None:
        """Note nothing any more."""
        if self.notes_changes():
            with self.write() as unit:
                unit.changed_rows.end()

    @contextmanager
    def frozen(self) -> Iterator[FrozenStore]:
        """Lend the store as it is when the block first reads."""
        with self._database.read() as connection:
            yield FrozenStore(connection, self._tenant_id, self._schema)

    @contextmanager
    def write(self) -> Iterator[Unit]:
        """Open a write transaction; durable when the block ends, undone when it raises."""
        with self._database.write() as connection:
            unit = Unit(connection, self._tenant_id, self._schema)
            yield unit
            unit.seal()

    def compact(self, worth_rewriting: float) -> bool:
        """See `TenantStore`."""
        return self._database.compact(worth_rewriting)

    def scrub(self) -> None:
        """See `TenantStore`."""
        self._database.scrub()

    def copy_to(self, target: Path, step: Step) -> None:
        """Copy the database as it is now into a new file, while it is in use.

        Raises:
            ResourceExhausted: the disk is full; nothing is left of the copy.
            Cancelled: `step` says so.
        """
        source = sqlite3.connect(address_of(self.path), uri=True)
        copy = sqlite3.connect(target)
        try:
            # Of this moment: without the snapshot each write would have the copy begin again.
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            (page,) = source.execute("PRAGMA page_size").fetchone()

            def report(_status: int, left: int, total: int) -> None:
                step.report("copying", (total - left) * page, total * page)

            source.backup(copy, pages=_COPIED_PAGES, progress=report)
            copy.execute("PRAGMA journal_mode = DELETE")  # One file, with no log beside it.
        except sqlite3.Error as error:
            copy.close()
            target.unlink(missing_ok=True)
            raise domain_error(error, target, read_only=False) or error from error
        finally:
            copy.close()
            source.close()

    def close(self) -> None:
        """Close the files."""
        self._database.close()


class FrozenStore:
    """Implements `engine.corpus.tenant_store.TenantStore[Unit]` on one transaction that reads,
    whatever is written meanwhile. It is for one thread, and ends with the transaction.

    Args:
        connection: in a transaction that reads.
        tenant_id: whose store it is.
        schema: what the database is made of.
    """

    memory_bytes = 0
    scan = None

    def __init__(self, connection: Connection, tenant_id: str, schema: TenantSchema) -> None:
        self._connection, self._tenant_id, self._schema = connection, tenant_id, schema
        kinds = schema.kinds.by_name
        self.source: CorpusSource = SqlCorpusSource(_OneMoment(connection), tenant_id, kinds)

    @contextmanager
    def read(self) -> Iterator[Unit]:
        """Read what there was."""
        yield Unit(self._connection, self._tenant_id, self._schema)

    def write(self) -> AbstractContextManager[Unit]:
        """Refuse: what was does not change."""
        raise TypeError("a frozen store cannot be written to")

    def compact(self, worth_rewriting: float) -> bool:
        """Do nothing."""
        return False

    def scrub(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: it ends with its transaction."""


class _OneMoment(Database):
    """Reads in one transaction that another opened and ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        yield self._connection

    def write(self) -> AbstractContextManager[Connection]:
        raise TypeError("a frozen store cannot be written to")

    def scrub(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
