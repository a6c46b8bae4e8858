"""The tables of a tenant's database.

Every table starts with `tenant_id`, and so does every index: with SQLite a tenant has a file of its
own, and the same statements run where tenants share one database. Times are microseconds since
1970, UTC. JSON is stored as canonical text.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

# SQLite numbers rows by itself only in a column of type INTEGER.
_Serial = BigInteger().with_variant(Integer, "sqlite")


def _tenant() -> Column[str]:
    return Column("tenant_id", Text, nullable=False, primary_key=True)


def _tenant_column() -> Column[str]:
    return Column("tenant_id", Text, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


sessions = Table(
    "sessions",
    metadata,
    _tenant(),
    Column("id", Text, nullable=False, primary_key=True),
    _text("agent_id"),
    _text("agent_name"),
    _text("user_id"),
    _text("project"),
    _text("tags"),
    _text("metadata"),
    Column("status", SmallInteger, nullable=False),
    _count("started_at"),
    Column("ended_at", BigInteger),
    Column("last_event_at", BigInteger),
    _count("event_count"),
    _count("tool_call_count"),
    _count("error_count"),
    _count("llm_call_count"),
    Column("total_cost_usd", Float, nullable=False),
    _count("total_input_tokens"),
    _count("total_output_tokens"),
    _text("head_hash"),
    Column("declared", Boolean, nullable=False),
    Index("sessions_by_start", "tenant_id", "started_at", "id"),
    Index("sessions_by_agent", "tenant_id", "agent_id", "started_at"),
    Index("sessions_by_project", "tenant_id", "project", "started_at"),
)

session_tags = Table(
    "session_tags",
    metadata,
    _tenant(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("session_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"], ondelete="CASCADE"
    ),
    Index("session_tags_by_session", "tenant_id", "session_id"),
    sqlite_with_rowid=False,
)

agents = Table(
    "agents",
    metadata,
    _tenant(),
    Column("id", Text, nullable=False, primary_key=True),
    _text("name"),
    _count("first_seen_at"),
    _count("last_seen_at"),
    _count("session_count"),
    _count("event_count"),
    _count("tool_call_count"),
    _count("error_count"),
    Column("total_cost_usd", Float, nullable=False),
    sqlite_with_rowid=False,
)

events = Table(
    "events",
    metadata,
    # The order of recording; what WatchEvents calls a cursor.
    Column("cursor", _Serial, primary_key=True, autoincrement=True),
    _tenant_column(),
    _text("id"),
    _text("session_id"),
    _count("sequence"),
    _text("agent_id"),
    Column("event_type", SmallInteger, nullable=False),
    Column("severity", SmallInteger, nullable=False),
    _count("timestamp"),
    _text("text"),
    _text("name"),
    _text("call_id"),
    _text("error"),
    _text("model"),
    _count("input_tokens"),
    _count("output_tokens"),
    Column("cost_usd", Float, nullable=False),
    Column("duration", BigInteger),
    _text("payload"),
    _text("metadata"),
    Column("searchable", Boolean, nullable=False),
    _count("recorded_at"),
    _text("prev_hash"),
    _text("hash"),
    # Which bytes `hash` covers. From version 2 on it covers `commitment`, which `salt` and the
    # content give; those before have neither.
    Column("hash_version", SmallInteger, nullable=False, server_default="1"),
    Column("salt", LargeBinary),
    Column("commitment", LargeBinary),
    UniqueConstraint("tenant_id", "id", name="events_id"),
    UniqueConstraint("tenant_id", "session_id", "sequence", name="events_chain"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("events_by_time", "tenant_id", "timestamp", "cursor"),
    Index("events_by_session", "tenant_id", "session_id", "timestamp", "cursor"),
    Index("events_by_agent", "tenant_id", "agent_id", "timestamp", "cursor"),
    Index(
        "events_that_failed",
        "tenant_id",
        "timestamp",
        "cursor",
        sqlite_where=text("severity >= 4"),
        postgresql_where=text("severity >= 4"),
    ),
    sqlite_autoincrement=True,
)

lessons = Table(
    "lessons",
    metadata,
    _tenant(),
    Column("id", Text, nullable=False, primary_key=True),
    _text("agent_id"),
    _text("project"),
    _text("category"),
    _text("title"),
    _text("content"),
    _text("context"),
    _text("tags"),
    Column("importance", SmallInteger, nullable=False),
    _text("source_session_id"),
    _text("source_event_id"),
    _count("access_count"),
    Column("last_accessed_at", BigInteger),
    _count("created_at"),
    _count("updated_at"),
    Column("archived_at", BigInteger),
    Index("lessons_by_update", "tenant_id", "updated_at", "id"),
    Index("lessons_by_category", "tenant_id", "category", "updated_at"),
)

lesson_tags = Table(
    "lesson_tags",
    metadata,
    _tenant(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("lesson_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "lesson_id"], ["lessons.tenant_id", "lessons.id"], ondelete="CASCADE"
    ),
    Index("lesson_tags_by_lesson", "tenant_id", "lesson_id"),
    sqlite_with_rowid=False,
)

documents = Table(
    "documents",
    metadata,
    # Never used again, not even after the last document was removed: indexes rely on it.
    Column("doc_id", _Serial, primary_key=True, autoincrement=True),
    _tenant_column(),
    Column("scope", SmallInteger, nullable=False),
    _text("source_id"),
    _text("text"),
    _count("timestamp"),
    _text("session_id"),
    _count("position"),
    _text("agent_id"),
    _text("user_id"),
    _text("project"),
    _text("category"),
    Column("importance", SmallInteger, nullable=False),
    Column("archived", Boolean, nullable=False),
    _text("tags"),
    UniqueConstraint("tenant_id", "scope", "source_id", name="documents_source"),
    Index("documents_by_session", "tenant_id", "session_id", "position"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    # The order of embedding; an index is caught up from the last one that it holds.
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    _tenant_column(),
    _count("doc_id"),
    # SHA-256 of the text: a text that was embedded before is not embedded again.
    Column("content_hash", LargeBinary, nullable=False),
    # Little-endian float32, of length one.
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("tenant_id", "doc_id", name="vectors_document"),
    Index("vectors_by_content", "tenant_id", "content_hash"),
    sqlite_autoincrement=True,
)

embedding_queue = Table(
    "embedding_queue",
    metadata,
    _tenant(),
    Column("doc_id", BigInteger, nullable=False, primary_key=True),
    Column("attempts", Integer, nullable=False),
    _count("due_at"),
    _text("last_error"),
    sqlite_with_rowid=False,
)

# What must fit for the vectors to be of use: "embedding_model", "embedding_dimensions".
settings = Table(
    "settings",
    metadata,
    _tenant(),
    Column("key", Text, nullable=False, primary_key=True),
    _text("value"),
    sqlite_with_rowid=False,
)

reflections = Table(
    "reflections",
    metadata,
    _tenant(),
    Column("id", Text, nullable=False, primary_key=True),
    _text("session_id"),
    _text("project"),
    _text("agent_id"),
    _text("task_description"),
    # The task without case and spacing: attempts at the same task are counted by it.
    _text("task_key"),
    Column("attempt_number", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    _text("what_worked"),
    _text("what_did_not_work"),
    _text("next_strategy"),
    _text("tags"),
    _text("related_entity_ids"),
    _text("applied_reflection_ids"),
    _count("created_at"),
    Index("reflections_by_session", "tenant_id", "session_id", "created_at", "id"),
    Index("reflections_by_project", "tenant_id", "project", "created_at", "id"),
    Index("reflections_by_time", "tenant_id", "created_at", "id"),
)

reflection_tags = Table(
    "reflection_tags",
    metadata,
    _tenant(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("reflection_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "reflection_id"],
        ["reflections.tenant_id", "reflections.id"],
        ondelete="CASCADE",
    ),
    Index("reflection_tags_by_reflection", "tenant_id", "reflection_id"),
    sqlite_with_rowid=False,
)

# What worked and what did not, one row a saying, embedded so that it can be grouped by meaning.
sayings = Table(
    "sayings",
    metadata,
    _tenant(),
    Column("reflection_id", Text, nullable=False, primary_key=True),
    Column("worked", Boolean, nullable=False, primary_key=True),
    Column("place", Integer, nullable=False, primary_key=True),
    _text("text"),
    Column("vector", LargeBinary, nullable=False),
    ForeignKeyConstraint(
        ["tenant_id", "reflection_id"],
        ["reflections.tenant_id", "reflections.id"],
        ondelete="CASCADE",
    ),
)

# Counts that outlive the rows they were taken from, e.g. of pruned reflections.
counters = Table(
    "counters",
    metadata,
    _tenant(),
    Column("name", Text, nullable=False, primary_key=True),
    _count("value"),
    sqlite_with_rowid=False,
)

knowledge = Table(
    "knowledge",
    metadata,
    _tenant(),
    Column("id", Text, nullable=False, primary_key=True),
    _text("repo"),
    _text("agent_id"),
    Column("type", SmallInteger, nullable=False),
    _text("context"),
    _text("command"),
    _text("lesson"),
    _text("success_rate"),
    _text("tags"),
    _count("timestamp"),
    Index("knowledge_by_repo", "tenant_id", "repo", "timestamp"),
)

# What a session came to; `summary` is what it is found by. Lists are JSON.
session_summaries = Table(
    "session_summaries",
    metadata,
    _tenant(),
    Column("session_id", Text, nullable=False, primary_key=True),
    _text("summary"),
    _text("topics"),
    _text("tools"),
    _text("tool_sequence"),
    _text("error_summary"),
    _text("errors"),
    _text("files"),
    Column("outcome", SmallInteger, nullable=False),
    _count("created_at"),
    _count("updated_at"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
)

handovers = Table(
    "handovers",
    metadata,
    _tenant(),
    Column("session_id", Text, nullable=False, primary_key=True),
    _text("project"),
    _text("agent_id"),
    _text("content"),
    # Progress and decisions, counted: what ranks it beside likeness and age.
    Column("weight", Integer, nullable=False),
    _count("duration_seconds"),
    _text("summary"),
    _count("created_at"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("handovers_by_project", "tenant_id", "project", "created_at", "session_id"),
    Index("handovers_by_time", "tenant_id", "created_at", "session_id"),
)

# Sessions whose summary is to be made; written with what makes it necessary.
summary_queue = Table(
    "summary_queue",
    metadata,
    _tenant(),
    Column("session_id", Text, nullable=False, primary_key=True),
    _count("due_at"),
    Column("attempts", Integer, nullable=False),
    _text("last_error"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("summary_queue_by_time", "tenant_id", "due_at"),
    sqlite_with_rowid=False,
)
