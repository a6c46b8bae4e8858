"""The tables of sessions, their events, and the agents that did it."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from mneme_server.engine.store.schema import (
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    serial_type,
    tenant_column,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.events.model import GradeSource, Outcome, SessionStatus, Severity

sessions = Table(
    "sessions",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("agent_id"),
    text_column("agent_name"),
    text_column("user_id"),
    text_column("project"),
    json_column("tags"),
    json_column("metadata"),
    enum_column("status", SessionStatus),
    time_column("started_at"),
    time_column("ended_at", nullable=True),
    Column("last_event_at", BigInteger),
    int64_column("event_count"),
    int64_column("tool_call_count"),
    int64_column("error_count"),
    int64_column("llm_call_count"),
    Column("total_cost_usd", Float, nullable=False),
    int64_column("total_input_tokens"),
    int64_column("total_output_tokens"),
    text_column("head_hash"),
    Column("declared", Boolean, nullable=False),
    Column("system", Boolean, nullable=False, server_default=false()),
    Column("observed", Boolean, nullable=False, server_default=false()),
    # How it turned out, who said so, and how good it was. Null: as status and metadata say, as long
    # as it is active, and where a server of the version before ended it.
    Column("outcome", SmallInteger),
    Column("outcome_by", SmallInteger),
    Column("reward", Float),
    Index("sessions_by_start", "tenant_id", "started_at", "id"),
    Index("sessions_by_agent", "tenant_id", "agent_id", "started_at"),
    Index("sessions_by_project", "tenant_id", "project", "started_at"),
    Index(
        "sessions_of_the_system",
        "tenant_id",
        "id",
        sqlite_where=text("system"),
        postgresql_where=text("system"),
    ),
    info=rows_are("session", "id"),
)

session_tags = Table(
    "session_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("session_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"], ondelete="CASCADE"
    ),
    Index("session_tags_by_session", "tenant_id", "session_id"),
    sqlite_with_rowid=False,
)

# Who said how sessions turned out. Rows are only added.
session_grades = Table(
    "session_grades",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("session_id"),
    enum_column("outcome", Outcome),
    Column("reward", Float),
    enum_column("source", GradeSource),
    text_column("grader"),
    text_column("comment"),
    int64_column("graded_at"),
    time_column("recorded_at"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("session_grades_by_session", "tenant_id", "session_id"),
    Index("session_grades_by_time", "tenant_id", "graded_at", "id"),
    info=rows_are("grade", "id"),
)

agents = Table(
    "agents",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    int64_column("first_seen_at"),
    int64_column("last_seen_at"),
    int64_column("session_count"),
    int64_column("event_count"),
    int64_column("tool_call_count"),
    int64_column("error_count"),
    Column("total_cost_usd", Float, nullable=False),
    sqlite_with_rowid=False,
    info=rows_are("agent", "id"),
)

events = Table(
    "events",
    metadata,
    # The order of recording; what WatchEvents calls a cursor.
    Column("cursor", serial_type, primary_key=True, autoincrement=True),
    tenant_column(),
    text_column("id"),
    text_column("session_id"),
    int64_column("sequence"),
    text_column("agent_id"),
    text_column("event_type"),
    enum_column("severity", Severity),
    time_column("timestamp"),
    text_column("text"),
    text_column("name"),
    text_column("call_id"),
    text_column("error"),
    text_column("model"),
    int64_column("input_tokens"),
    int64_column("output_tokens"),
    Column("cost_usd", Float, nullable=False),
    Column("duration", BigInteger),
    json_column("payload"),
    json_column("metadata"),
    Column("searchable", Boolean, nullable=False),
    time_column("recorded_at"),
    text_column("prev_hash"),
    text_column("hash"),
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
    info=rows_are("event", "id"),
)

# Sessions of which everything was forgotten. `session` is the SHA-256 of the id; see
# `features.events.chain`.
forgotten_sessions = Table(
    "forgotten_sessions",
    metadata,
    tenant_key(),
    Column("session", Text, nullable=False, primary_key=True),
    int64_column("event_count"),
    text_column("head_hash"),
    time_column("forgotten_at"),
    sqlite_with_rowid=False,
    info=rows_are("forgotten session", "session"),
)

# The places that forgotten events have in their chains.
forgotten_events = Table(
    "forgotten_events",
    metadata,
    tenant_key(),
    Column("session", Text, nullable=False, primary_key=True),
    Column("sequence", BigInteger, nullable=False, primary_key=True, autoincrement=False),
    text_column("event"),
    text_column("prev_hash"),
    text_column("hash"),
    Column("hash_version", SmallInteger, nullable=False),
    Column("commitment", LargeBinary, nullable=False),
    time_column("forgotten_at"),
    Index("forgotten_events_by_event", "tenant_id", "event"),
    sqlite_with_rowid=False,
    info=rows_are("forgotten event", "sequence"),
)
