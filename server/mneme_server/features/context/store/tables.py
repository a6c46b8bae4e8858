"""The tables of what sessions came to, and of what they left to the next."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, Table, Text

from mneme_server.engine.store.schema import (
    enum_column,
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)
from mneme_server.features.events.model import Outcome

# What a session came to; `summary` is what it is found by. Lists are JSON.
session_summaries = Table(
    "session_summaries",
    metadata,
    tenant_key(),
    Column("session_id", Text, nullable=False, primary_key=True),
    text_column("summary"),
    json_column("topics"),
    json_column("tools"),
    json_column("tool_sequence"),
    text_column("error_summary"),
    json_column("errors"),
    json_column("files"),
    enum_column("outcome", Outcome),
    time_column("created_at"),
    int64_column("updated_at"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    info=rows_are("summary", "session_id"),
)

handovers = Table(
    "handovers",
    metadata,
    tenant_key(),
    Column("session_id", Text, nullable=False, primary_key=True),
    text_column("project"),
    text_column("agent_id"),
    json_column("content"),
    # Progress and decisions, counted: what ranks it beside likeness and age.
    Column("weight", Integer, nullable=False),
    int64_column("duration_seconds"),
    text_column("summary"),
    time_column("created_at"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("handovers_by_project", "tenant_id", "project", "created_at", "session_id"),
    Index("handovers_by_time", "tenant_id", "created_at", "session_id"),
    info=rows_are("handover", "session_id"),
)

# Sessions whose summary is to be made; written with what makes it necessary.
summary_queue = Table(
    "summary_queue",
    metadata,
    tenant_key(),
    Column("session_id", Text, nullable=False, primary_key=True),
    int64_column("due_at"),
    Column("attempts", Integer, nullable=False),
    text_column("last_error"),
    ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
    Index("summary_queue_by_time", "tenant_id", "due_at"),
    sqlite_with_rowid=False,
)
