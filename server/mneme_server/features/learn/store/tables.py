"""The tables of lessons, reflections and the knowledge log."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

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
from mneme_server.features.learn.model import KnowledgeType, LessonImportance

lessons = Table(
    "lessons",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("agent_id"),
    text_column("project"),
    text_column("category"),
    text_column("title"),
    text_column("content"),
    json_column("context"),
    json_column("tags"),
    enum_column("importance", LessonImportance),
    text_column("source_session_id"),
    text_column("source_event_id"),
    int64_column("access_count"),
    Column("last_accessed_at", BigInteger),
    time_column("created_at"),
    int64_column("updated_at"),
    Column("archived_at", BigInteger),
    Index("lessons_by_update", "tenant_id", "updated_at", "id"),
    Index("lessons_by_category", "tenant_id", "category", "updated_at"),
    info=rows_are("lesson", "id"),
)

lesson_tags = Table(
    "lesson_tags",
    metadata,
    tenant_key(),
    Column("tag", Text, nullable=False, primary_key=True),
    Column("lesson_id", Text, nullable=False, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "lesson_id"], ["lessons.tenant_id", "lessons.id"], ondelete="CASCADE"
    ),
    Index("lesson_tags_by_lesson", "tenant_id", "lesson_id"),
    sqlite_with_rowid=False,
)

reflections = Table(
    "reflections",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("session_id"),
    text_column("project"),
    text_column("agent_id"),
    text_column("task_description"),
    # The task without case and spacing: attempts at the same task are counted by it.
    text_column("task_key"),
    Column("attempt_number", Integer, nullable=False),
    enum_column("outcome", Outcome),
    json_column("what_worked"),
    json_column("what_did_not_work"),
    text_column("next_strategy"),
    json_column("tags"),
    json_column("related_entity_ids"),
    json_column("applied_reflection_ids"),
    time_column("created_at"),
    Index("reflections_by_session", "tenant_id", "session_id", "created_at", "id"),
    Index("reflections_by_project", "tenant_id", "project", "created_at", "id"),
    Index("reflections_by_time", "tenant_id", "created_at", "id"),
    info=rows_are("reflection", "id"),
)

reflection_tags = Table(
    "reflection_tags",
    metadata,
    tenant_key(),
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
    tenant_key(),
    Column("reflection_id", Text, nullable=False, primary_key=True),
    Column("worked", Boolean, nullable=False, primary_key=True),
    Column("place", Integer, nullable=False, primary_key=True),
    text_column("text"),
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
    tenant_key(),
    Column("name", Text, nullable=False, primary_key=True),
    int64_column("value"),
    sqlite_with_rowid=False,
)

knowledge = Table(
    "knowledge",
    metadata,
    tenant_key(),
    Column("id", Text, nullable=False, primary_key=True),
    text_column("project"),
    text_column("agent_id"),
    enum_column("type", KnowledgeType),
    text_column("context"),
    text_column("command"),
    text_column("lesson"),
    text_column("success_rate"),
    json_column("tags"),
    time_column("timestamp"),
    Index("knowledge_by_project", "tenant_id", "project", "timestamp"),
    info=rows_are("knowledge entry", "id"),
)
