"""What was attempted, and what works."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Table,
    Text,
)

from mneme_server.storage.schema import (
    json_column,
    metadata,
    rows_are,
    tenant_key,
    text_column,
    time_column,
)

episodes = Table(
    "episodes",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("session_id"),
    text_column("agent_id"),
    text_column("user_id"),
    text_column("project"),
    text_column("task"),
    text_column("input"),
    text_column("output"),
    text_column("critique"),
    Column("reward", Float, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("latency_ms", BigInteger),
    Column("tokens_used", BigInteger),
    json_column("tools"),
    json_column("tags"),
    json_column("metadata"),
    time_column("occurred_at"),
    time_column("created_at"),
    # The fields that were taken from the session's record.
    json_column("filled"),
    Index("episodes_by_time", "tenant_id", "occurred_at", "id"),
    Index("episodes_by_session", "tenant_id", "session_id", "occurred_at", "id"),
    info=rows_are("episode", "id"),
)

episode_tags = Table(
    "episode_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("episode_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "episode_id"], ["episodes.tenant_id", "episodes.id"], ondelete="CASCADE"
    ),
    Index("episode_tags_by_episode", "tenant_id", "episode_id"),
    sqlite_with_rowid=False,
)
