"""The tables of a tenant's database: what all of them are made of, and those of the corpus.

Every table starts with `tenant_id`, and so does every index: with SQLite a tenant has a file of its
own, and the same statements run where tenants share one database. Times are microseconds since
1970, UTC. JSON is stored as canonical text.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    select,
    text,
)

metadata = MetaData()
"""The tables of a tenant's database; each capability adds its own."""
serial_type = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""
_SESSIONS = "sessions"
"""The table that has a row for each session; it is the events' own."""


def tenant_key() -> Column[str]:
    """Return the column `tenant_id` of a table whose primary key begins with it."""
    return Column("tenant_id", Text, nullable=False, primary_key=True)


def tenant_column() -> Column[str]:
    """Return the column `tenant_id` of a table whose rows are numbered."""
    return Column("tenant_id", Text, nullable=False)


def text_column(name: str) -> Column[str]:
    """Return a column of text, never null."""
    return Column(name, Text, nullable=False)


def int64_column(name: str) -> Column[int]:
    """Return a column of whole numbers, never null: counts, and times."""
    return Column(name, BigInteger, nullable=False)


def time_column(name: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of microseconds since 1970, UTC."""
    return Column(name, BigInteger, nullable=nullable, info={"time": True})


def json_column(name: str) -> Column[str]:
    """Return a column of JSON as canonical text, never null."""
    return Column(name, Text, nullable=False, info={"json": True})


def enum_column(name: str, members: type[IntEnum]) -> Column[int]:
    """Return a column that holds the numbers of these members, never null."""
    return Column(name, SmallInteger, nullable=False, info={"enum": members})


def rows_are(kind: str, key: str) -> dict[str, object]:
    """Return a table's `info`: what a row is called, and which column names it, when one is found
    damaged.
    """
    return {"kind": kind, "key": key}


def sessions_of_user(tenant_id: str, user_id: str) -> Select[Any]:
    """Return the statement that selects the ids of the sessions of a user: for stores whose rows
    belong to the user of a session, which may become known after they were written."""
    sessions = metadata.tables[_SESSIONS].c
    return select(sessions.id).where(sessions.tenant_id == tenant_id, sessions.user_id == user_id)


documents = Table(
    "documents",
    metadata,
    # Never used again, not even after the last document was removed: indexes rely on it.
    Column("doc_id", serial_type, primary_key=True, autoincrement=True),
    tenant_column(),
    text_column("kind"),
    text_column("source_id"),
    text_column("text"),
    time_column("timestamp"),
    text_column("session_id"),
    int64_column("position"),
    text_column("agent_id"),
    text_column("user_id"),
    text_column("project"),
    text_column("category"),
    Column("importance", SmallInteger, nullable=False),
    Column("archived", Boolean, nullable=False),
    json_column("tags"),
    # What filters look at besides; empty for what is no event.
    *(Column(name, Text, nullable=False, server_default="") for name in ("type", "name", "role")),
    Column("severity", SmallInteger, nullable=False, server_default="0"),
    Column("shape", BigInteger, nullable=False, server_default="0"),
    # What documents of a kind are filtered by; 0 where a kind has no such number.
    Column("value", Float, nullable=False, server_default="0"),
    UniqueConstraint("tenant_id", "kind", "source_id", name="documents_source"),
    Index("documents_by_session", "tenant_id", "session_id", "position"),
    sqlite_autoincrement=True,
    info=rows_are("memory", "source_id"),
)
vectors = Table(
    "vectors",
    metadata,
    # The order of embedding; an index is caught up from the last one that it holds.
    Column("seq", serial_type, primary_key=True, autoincrement=True),
    tenant_column(),
    int64_column("doc_id"),
    # SHA-256 of the text: a text that was embedded before is not embedded again.
    Column("content_hash", LargeBinary, nullable=False),
    # Little-endian float32, of length one.
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("tenant_id", "doc_id", name="vectors_document"),
    Index("vectors_by_content", "tenant_id", "content_hash"),
    sqlite_autoincrement=True,
    info=rows_are("vector of memory", "doc_id"),
)
embedding_queue = Table(
    "embedding_queue",
    metadata,
    tenant_key(),
    Column("doc_id", BigInteger, nullable=False, primary_key=True),
    Column("attempts", Integer, nullable=False),
    int64_column("due_at"),
    text_column("last_error"),
    Index(
        "embeddings_that_failed",
        "tenant_id",
        sqlite_where=text("attempts > 0"),
        postgresql_where=text("attempts > 0"),
    ),
    sqlite_with_rowid=False,
)
# One row for each commit that changes what is searched, numbered in their order without gaps. It
# names what changed and holds none of it; see `engine.corpus.feed`.
feed = Table(
    "feed",
    metadata,
    tenant_key(),
    Column("number", BigInteger, nullable=False, primary_key=True),
    # Random: where a number's mark is another, the database is not the one that was followed.
    int64_column("mark"),
    json_column("changes"),
    sqlite_with_rowid=False,
    info=rows_are("row of the feed", "number"),
)
# How far each durable follower came.
followers = Table(
    "followers",
    metadata,
    tenant_key(),
    Column("name", Text, nullable=False, primary_key=True),
    int64_column("number"),
    int64_column("mark"),
    sqlite_with_rowid=False,
)
# What must fit for the vectors to be of use: "embedding_model", "embedding_dimensions"; and
# "generation", which names the store: a number of its feed says nothing of another's.
settings = Table(
    "settings",
    metadata,
    tenant_key(),
    Column("key", Text, nullable=False, primary_key=True),
    text_column("value"),
    sqlite_with_rowid=False,
)
# How many rows of a kind a tenant has; see `engine.store.totals`.
totals = Table(
    "totals",
    metadata,
    tenant_key(),
    Column("name", Text, nullable=False, primary_key=True),
    int64_column("value"),
    sqlite_with_rowid=False,
)
