"""One transaction on a tenant's database, and the repositories that work in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from sqlalchemy import Connection, bindparam, delete, literal, select

from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.engine.corpus.forgetting import Forgetter
from mneme_server.engine.store.connections import sqlite_of
from mneme_server.engine.store.documents import SqlDocuments
from mneme_server.engine.store.feed import SqlFeed
from mneme_server.engine.store.forgetting import CORPUS_FORGETS, Forgets
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.memories import MemoryKinds, Shown, SqlMemoryReader
from mneme_server.engine.store.portable import insert
from mneme_server.engine.store.projection_reader import SqlShown
from mneme_server.engine.store.schema import documents, embedding_queue, settings, vectors
from mneme_server.engine.store.tenant_rows import SqlChangedRows, SqlRows
from mneme_server.engine.store.vectors import SqlEmbeddingQueue

R = TypeVar("R")

Seal: TypeAlias = "Callable[[Unit], object]"
"""Adds to a transaction what belongs to all that it changed, before it is committed."""

CORE_MIGRATIONS = Path(__file__).parent / "tenant_migrations"

_SETTINGS = Prepared(
    select(settings.c.key, settings.c.value).where(settings.c.tenant_id == bindparam("tenant"))
)


@dataclass(frozen=True, slots=True)
class TenantSchema:
    """What a tenant's database is made of: the corpus, and what each capability brings.

    `migrations` are the folders of Alembic revisions, the first of them the trunk, each of the
    others a branch; `kinds` those of memory. `seals` add what belongs to every change, before a
    transaction is committed. `forgets` say how each capability forgets, in the order in which they
    build on each other. `ports` say which repository implements what a capability below asks for.
    """

    migrations: tuple[Path, ...] = (CORE_MIGRATIONS,)
    kinds: MemoryKinds = field(default_factory=lambda: MemoryKinds([]))
    seals: tuple[Seal, ...] = ()
    forgets: tuple[Forgets, ...] = (CORPUS_FORGETS,)
    ports: Mapping[type, type] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        branches: Iterable[Path] = (),
        kinds: Iterable[Mapping[MemoryKind, Shown]] = (),
        seals: Iterable[Seal] = (),
        forgets: Iterable[Forgets] = (),
        ports: Iterable[Mapping[type, type]] = (),
    ) -> TenantSchema:
        """Join what capabilities bring.

        Raises:
            ValueError: two of them bring a kind of memory of one name, see `MemoryKinds`, or
                implement the same port.
        """
        implemented: dict[type, type] = {}
        for brought in ports:
            if twice := implemented.keys() & brought.keys():
                raise ValueError(f"two capabilities implement {twice.pop().__name__}")
            implemented |= brought
        return cls(
            (CORE_MIGRATIONS, *branches),
            MemoryKinds(kinds),
            tuple(seals),
            (CORPUS_FORGETS, *forgets),
            implemented,
        )


class EmbeddingModel(NamedTuple):
    """What made a tenant's vectors."""

    model_id: str
    dimensions: int


class Unit:
    """One transaction on a tenant's database, with its repositories."""

    def __init__(self, connection: Connection, tenant_id: str, schema: TenantSchema) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._kinds, self._ports = schema.kinds, schema.ports
        self._seals = schema.seals
        self._forgets = schema.forgets
        self._made: dict[type, Any] = {}

    def get(self, repository: type[R]) -> R:
        """Return the transaction's repository of a class, or of the class that implements a port;
        made when it is first asked for."""
        made = self._made.get(repository)
        if made is None:
            implementing: type = self._ports.get(repository, repository)
            made = self._made.get(implementing) or implementing(self._connection, self._tenant_id)
            self._made[repository] = self._made[implementing] = made
        return cast(R, made)

    @cached_property
    def documents(self) -> SqlDocuments:
        """What can be recalled."""
        return SqlDocuments(self._connection, self._tenant_id, self._kinds.by_name)

    @cached_property
    def memories(self) -> SqlMemoryReader:
        """What can be recalled, as it is shown."""
        return SqlMemoryReader(self._connection, self._tenant_id, self._kinds)

    @cached_property
    def queue(self) -> SqlEmbeddingQueue:
        """What waits for its embedding."""
        return SqlEmbeddingQueue(self._connection, self._tenant_id, self.documents.changes)

    @cached_property
    def feed(self) -> SqlFeed:
        """What each commit changed."""
        return SqlFeed(self._connection, self._tenant_id)

    @cached_property
    def shown(self) -> SqlShown:
        """What can be recalled, as it is shown, to be copied."""
        return SqlShown(self._connection, self._tenant_id, self._kinds)

    @cached_property
    def rows(self) -> SqlRows:
        """All that there is of the tenant, table by table, to be moved."""
        return SqlRows(self._connection, self._tenant_id)

    @cached_property
    def changed_rows(self) -> SqlChangedRows:
        """Which rows change while the tenant is copied."""
        return SqlChangedRows(self._connection)

    def follows(self, kind: MemoryKind) -> bool:
        """Return whether what is shown of a kind beside its documents changes with these alone."""
        details = self._kinds.details(kind)
        return details is not None and details.followed

    @property
    def forgetters(self) -> Sequence[Forgetter]:
        """What forgets, in this transaction: for each capability one."""
        return [one.make(self._connection, self._tenant_id) for one in self._forgets]

    def require_overwriting(self) -> None:
        """See that what is deleted can be overwritten where it lies.

        Raises:
            FailedPrecondition: the database does not do that.
        """

    def overwrite(self) -> None:
        """Have what is deleted in this transaction overwritten where it lies in the file."""
        sqlite_of(self._connection).execute("PRAGMA secure_delete = ON")

    def seal(self) -> None:
        """Write what belongs to every change, if anything changed, and last of all before the
        commit the row of the feed."""
        written = self.__dict__.get("documents")
        if written is not None and written.changes:
            for seal in self._seals:
                seal(self)
            written.changes.position = self.feed.append(written.changes)

    def embedding_model(self) -> EmbeddingModel | None:
        """Return what made the tenant's vectors; None before there were any."""
        given = {"tenant": self._tenant_id}
        values = {row.key: row.value for row in _SETTINGS.all(self._connection, given)}
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
        self.documents.changes.everything = True
        return self.queue.depth()
