"""The tables of patterns."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, Index, Table, Text

from mneme_server.engine.store.schema import (
    int64_column,
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)

patterns = Table(
    "patterns",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("name"),
    text_column("description"),
    json_column("definition"),
    time_column("created_at"),
    # How it was used; see `features.memory.patterns.model.Use`.
    int64_column("uses"),
    int64_column("matches"),
    int64_column("took_us"),
    time_column("last_used_at"),
    # Matches that were said to be right, and wrong; also of memories that are gone by now.
    int64_column("right"),
    int64_column("wrong"),
    Index("patterns_by_name", "tenant_id", "name", unique=True),
    info=rows_are("pattern", "id"),
)

pattern_verdicts = Table(
    "pattern_verdicts",
    metadata,
    tenant_key(),
    Column("pattern_id", Text, nullable=False, primary_key=True),
    Column("memory_id", Text, nullable=False, primary_key=True),
    Column("right", Boolean, nullable=False),
    time_column("judged_at"),
    ForeignKeyConstraint(
        ["tenant_id", "pattern_id"], ["patterns.tenant_id", "patterns.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
    ),
    Index("pattern_verdicts_by_memory", "tenant_id", "memory_id"),
    sqlite_with_rowid=False,
)
