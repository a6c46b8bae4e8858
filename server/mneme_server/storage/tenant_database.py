"""One tenant's database: a file in the tenant's folder, opened, migrated, and read in units."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Table, delete, func, literal, select
from sqlalchemy.dialects.sqlite import insert

from mneme_server.common.clock import now_us
from mneme_server.storage.documents import SqlCorpusSource, SqlDocuments, SqlEmbeddingQueue
from mneme_server.storage.engine import Database, address_of, domain_error
from mneme_server.storage.event_repositories import SqlAgents, SqlEvents, SqlSessions
from mneme_server.storage.guard import require_tenant
from mneme_server.storage.handover_repository import SqlHandovers
from mneme_server.storage.knowledge_repository import SqlKnowledge
from mneme_server.storage.lesson_repository import SqlLessons
from mneme_server.storage.memory_details import SqlMemories
from mneme_server.storage.migrate import migrate
from mneme_server.storage.reflect_reader import SqlHistory
from mneme_server.storage.reflection_repository import SqlCounters, SqlReflections
from mneme_server.storage.summary_repository import SqlSummaries, SqlSummaryQueue
from mneme_server.storage.tables import (
    agents,
    documents,
    embedding_queue,
    events,
    lessons,
    metadata,
    sessions,
    settings,
    vectors,
)

FILE_NAME = "mneme.db"
MIGRATIONS = Path(__file__).parent / "tenant_migrations"


class EmbeddingModel(NamedTuple):
    """What made a tenant's vectors."""

    model_id: str
    dimensions: int


class Counts(NamedTuple):
    """How many rows a tenant has of each kind. `failed` are queued ones that failed before."""

    events: int
    sessions: int
    agents: int
    lessons: int
    failed: int


class Unit:
    """One transaction on a tenant's database, with its repositories."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    @cached_property
    def sessions(self) -> SqlSessions:
        """The tenant's sessions."""
        return SqlSessions(self._connection, self._tenant_id)

    @cached_property
    def events(self) -> SqlEvents:
        """The tenant's events."""
        return SqlEvents(self._connection, self._tenant_id)

    @cached_property
    def agents(self) -> SqlAgents:
        """The tenant's agents."""
        return SqlAgents(self._connection, self._tenant_id)

    @cached_property
    def lessons(self) -> SqlLessons:
        """The tenant's lessons."""
        return SqlLessons(self._connection, self._tenant_id)

    @cached_property
    def history(self) -> SqlHistory:
        """The tenant's record, read by columns."""
        return SqlHistory(self._connection, self._tenant_id)

    @cached_property
    def reflections(self) -> SqlReflections:
        """The tenant's reflections."""
        return SqlReflections(self._connection, self._tenant_id)

    @cached_property
    def knowledge(self) -> SqlKnowledge:
        """The tenant's knowledge log."""
        return SqlKnowledge(self._connection, self._tenant_id)

    @cached_property
    def counters(self) -> SqlCounters:
        """Counts that outlive the rows they were taken from."""
        return SqlCounters(self._connection, self._tenant_id)

    @cached_property
    def summaries(self) -> SqlSummaries:
        """What the tenant's sessions came to."""
        return SqlSummaries(self._connection, self._tenant_id)

    @cached_property
    def summary_queue(self) -> SqlSummaryQueue:
        """The sessions whose summaries are to be made."""
        return SqlSummaryQueue(self._connection, self._tenant_id)

    @cached_property
    def handovers(self) -> SqlHandovers:
        """What sessions left to the next."""
        return SqlHandovers(self._connection, self._tenant_id)

    @cached_property
    def documents(self) -> SqlDocuments:
        """What can be recalled."""
        return SqlDocuments(self._connection, self._tenant_id)

    @cached_property
    def queue(self) -> SqlEmbeddingQueue:
        """What waits for its embedding."""
        return SqlEmbeddingQueue(self._connection, self._tenant_id, self.documents.changes)

    @cached_property
    def memories(self) -> SqlMemories:
        """Memories as recall shows them."""
        return SqlMemories(self._connection, self._tenant_id)

    def counts(self) -> Counts:
        """Count the tenant's rows."""
        return Counts(
            events=self._count(events),
            sessions=self._count(sessions),
            agents=self._count(agents),
            lessons=self._count(lessons, lessons.c.archived_at.is_(None)),
            failed=self.queue.failed(),
        )

    def embedding_model(self) -> EmbeddingModel | None:
        """Return what made the tenant's vectors; None before there were any."""
        query = select(settings.c.key, settings.c.value).where(
            settings.c.tenant_id == self._tenant_id
        )
        values = {row.key: row.value for row in self._connection.execute(query)}
        if "embedding_model" not in values:
            return None
        return EmbeddingModel(values["embedding_model"], int(values["embedding_dimensions"]))

    def set_embedding_model(self, model: EmbeddingModel) -> None:
        """Note what makes the tenant's vectors from now on."""
        statement = insert(settings)
        self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=["tenant_id", "key"], set_={"value": statement.excluded.value}
            ),
            [
                {"tenant_id": self._tenant_id, "key": key, "value": str(value)}
                for key, value in (
                    ("embedding_model", model.model_id),
                    ("embedding_dimensions", model.dimensions),
                )
            ],
        )

    def embed_everything_again(self) -> int:
        """Drop every vector and queue every document; return how many were queued."""
        mine = self._tenant_id
        self._connection.execute(delete(vectors).where(vectors.c.tenant_id == mine))
        self._connection.execute(delete(embedding_queue).where(embedding_queue.c.tenant_id == mine))
        columns = ["tenant_id", "doc_id", "attempts", "due_at", "last_error"]
        everything = select(
            documents.c.tenant_id,
            documents.c.doc_id,
            literal(0),
            literal(now_us()),
            literal(""),
        ).where(documents.c.tenant_id == mine)
        self._connection.execute(embedding_queue.insert().from_select(columns, everything))
        return self.queue.depth()

    def _count(self, table: Table, *conditions: object) -> int:
        query = select(func.count()).select_from(table).where(table.c.tenant_id == self._tenant_id)
        for condition in conditions:
            query = query.where(condition)  # type: ignore[arg-type]
        return int(self._connection.execute(query).scalar_one())


class SqlTenantDatabase:
    """Implements `corpus.tenant.TenantDatabase[Unit]`.

    Args:
        folder: the tenant's folder; it must exist.
        tenant_id: the tenant.

    Raises:
        FailedPrecondition: a newer version made the database, or it is damaged.
    """

    def __init__(self, folder: Path, tenant_id: str) -> None:
        self.path = folder / FILE_NAME
        self._tenant_id = tenant_id
        # Two resting connections a tenant: thousands of tenants must not hold many files open.
        self._database = Database(self.path, readers=2)
        try:
            migrate(self._database, MIGRATIONS)
        except BaseException:
            self._database.close()
            raise
        for engine in (self._database.writer, self._database.reader):
            require_tenant(engine, metadata.tables.keys())
        self.source = SqlCorpusSource(self._database, tenant_id)

    @contextmanager
    def read(self) -> Iterator[Unit]:
        """Open a read transaction: one consistent snapshot."""
        with self._database.read() as connection:
            yield Unit(connection, self._tenant_id)

    @contextmanager
    def write(self) -> Iterator[Unit]:
        """Open a write transaction; durable when the block ends, undone when it raises."""
        with self._database.write() as connection:
            yield Unit(connection, self._tenant_id)

    def copy_to(self, target: Path) -> None:
        """Copy the database as it is now into a new file, while it is in use.

        Raises:
            ResourceExhausted: the disk is full; nothing is left of the copy.
        """
        source = sqlite3.connect(address_of(self.path), uri=True)
        copy = sqlite3.connect(target)
        try:
            source.backup(copy)
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


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
