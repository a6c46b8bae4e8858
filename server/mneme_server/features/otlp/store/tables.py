"""The tables of what was received."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, SmallInteger, Table, Text

from mneme_server.engine.store.schema import (
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)

# Spans and log records that are no events yet.
otlp_inbox = Table(
    "otlp_inbox",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("trace_id"),
    # What it names itself; empty when it names none.
    text_column("session_id"),
    text_column("user_id"),
    # The span, as JSON.
    text_column("span"),
    Column("patient", Boolean, nullable=False),
    Column("attempts", SmallInteger, nullable=False),
    time_column("due_at"),
    # Of `span`, in UTF-8.
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("otlp_inbox_by_due", "tenant_id", "due_at"),
    Index("otlp_inbox_by_size", "tenant_id", "bytes"),
    Index("otlp_inbox_by_trace", "tenant_id", "trace_id"),
    info=rows_are("span", "id"),
)

# Spans that became events, and the sessions of traces (whose span_id is empty).
otlp_known = Table(
    "otlp_known",
    metadata,
    tenant_key(),
    Column("trace_id", Text, nullable=False, primary_key=True),
    Column("span_id", Text, nullable=False, primary_key=True),
    text_column("parent_id"),
    text_column("session_id"),
    text_column("kind"),
    Column("failed", Boolean, nullable=False),
    time_column("kept_at"),
    Index("otlp_known_by_time", "tenant_id", "kept_at"),
    Index("otlp_known_by_session", "tenant_id", "session_id"),
    info=rows_are("span", "span_id"),
    sqlite_with_rowid=False,
)
