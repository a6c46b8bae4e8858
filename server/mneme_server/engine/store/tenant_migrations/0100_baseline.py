"""What is recorded and recalled, what is learned from it, and what is counted: today's tables."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None


def upgrade() -> None:
    _make_the_record()
    _make_the_corpus()
    _make_lessons()
    _make_context()
    _make_figures()


def _make_the_record() -> None:
    op.create_table(
        "agents",
        *_texts("tenant_id", "id", "name"),
        *_numbers(
            "first_seen_at",
            "last_seen_at",
            "session_count",
            "event_count",
            "tool_call_count",
            "error_count",
        ),
        *_reals("total_cost_usd"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sessions",
        *_texts(
            "tenant_id", "id", "agent_id", "agent_name", "user_id", "project", "tags", "metadata"
        ),
        *_smalls("status"),
        *_numbers("started_at"),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("last_event_at", sa.BigInteger(), nullable=True),
        *_numbers("event_count", "tool_call_count", "error_count", "llm_call_count"),
        *_reals("total_cost_usd"),
        *_numbers("total_input_tokens", "total_output_tokens"),
        *_texts("head_hash"),
        *_flags("declared"),
        sa.Column("system", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("sessions_by_agent", "sessions", ["tenant_id", "agent_id", "started_at"])
    op.create_index("sessions_by_project", "sessions", ["tenant_id", "project", "started_at"])
    op.create_index("sessions_by_start", "sessions", ["tenant_id", "started_at", "id"])
    op.create_index(
        "sessions_of_the_system",
        "sessions",
        ["tenant_id", "id"],
        sqlite_where=sa.text("system"),
        postgresql_where=sa.text("system"),
    )
    op.create_table(
        "session_tags",
        *_texts("tenant_id", "tag", "session_id"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "session_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("session_tags_by_session", "session_tags", ["tenant_id", "session_id"])
    op.create_table(
        "events",
        sa.Column(
            "cursor",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        *_texts("tenant_id", "id", "session_id"),
        *_numbers("sequence"),
        *_texts("agent_id", "event_type"),
        *_smalls("severity"),
        *_numbers("timestamp"),
        *_texts("text", "name", "call_id", "error", "model"),
        *_numbers("input_tokens", "output_tokens"),
        *_reals("cost_usd"),
        sa.Column("duration", sa.BigInteger(), nullable=True),
        *_texts("payload", "metadata"),
        *_flags("searchable"),
        *_numbers("recorded_at"),
        *_texts("prev_hash", "hash"),
        sa.Column("hash_version", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("commitment", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("cursor"),
        sa.UniqueConstraint("tenant_id", "id", name="events_id"),
        sa.UniqueConstraint("tenant_id", "session_id", "sequence", name="events_chain"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_agent", "events", ["tenant_id", "agent_id", "timestamp", "cursor"])
    op.create_index(
        "events_by_session", "events", ["tenant_id", "session_id", "timestamp", "cursor"]
    )
    op.create_index("events_by_time", "events", ["tenant_id", "timestamp", "cursor"])
    op.create_index(
        "events_that_failed",
        "events",
        ["tenant_id", "timestamp", "cursor"],
        sqlite_where=sa.text("severity >= 4"),
        postgresql_where=sa.text("severity >= 4"),
    )


def _make_the_corpus() -> None:
    op.create_table(
        "documents",
        sa.Column(
            "doc_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        *_texts("tenant_id", "kind", "source_id", "text"),
        *_numbers("timestamp"),
        *_texts("session_id"),
        *_numbers("position"),
        *_texts("agent_id", "user_id", "project", "category"),
        *_smalls("importance"),
        *_flags("archived"),
        *_texts("tags"),
        sa.Column("type", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("role", sa.Text(), server_default="", nullable=False),
        sa.Column("severity", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("shape", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("value", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("doc_id"),
        sa.UniqueConstraint("tenant_id", "kind", "source_id", name="documents_source"),
        sqlite_autoincrement=True,
    )
    op.create_index("documents_by_session", "documents", ["tenant_id", "session_id", "position"])
    op.create_table(
        "vectors",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        *_texts("tenant_id"),
        *_numbers("doc_id"),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("tenant_id", "doc_id", name="vectors_document"),
        sqlite_autoincrement=True,
    )
    op.create_index("vectors_by_content", "vectors", ["tenant_id", "content_hash"])
    op.create_table(
        "embedding_queue",
        *_texts("tenant_id"),
        *_numbers("doc_id"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *_numbers("due_at"),
        *_texts("last_error"),
        sa.PrimaryKeyConstraint("tenant_id", "doc_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "embeddings_that_failed",
        "embedding_queue",
        ["tenant_id"],
        sqlite_where=sa.text("attempts > 0"),
        postgresql_where=sa.text("attempts > 0"),
    )
    op.create_table(
        "feed",
        *_texts("tenant_id"),
        *_numbers("number", "mark"),
        *_texts("changes"),
        sa.PrimaryKeyConstraint("tenant_id", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "followers",
        *_texts("tenant_id", "name"),
        *_numbers("number", "mark"),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )


def _make_lessons() -> None:
    op.create_table(
        "lessons",
        *_texts(
            "tenant_id",
            "id",
            "agent_id",
            "project",
            "category",
            "title",
            "content",
            "context",
            "tags",
        ),
        *_smalls("importance"),
        *_texts("source_session_id", "source_event_id"),
        *_numbers("access_count"),
        sa.Column("last_accessed_at", sa.BigInteger(), nullable=True),
        *_numbers("created_at", "updated_at"),
        sa.Column("archived_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("lessons_by_category", "lessons", ["tenant_id", "category", "updated_at"])
    op.create_index("lessons_by_update", "lessons", ["tenant_id", "updated_at", "id"])
    op.create_table(
        "lesson_tags",
        *_texts("tenant_id", "tag", "lesson_id"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lesson_id"], ["lessons.tenant_id", "lessons.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "lesson_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("lesson_tags_by_lesson", "lesson_tags", ["tenant_id", "lesson_id"])
    op.create_table(
        "reflections",
        *_texts(
            "tenant_id", "id", "session_id", "project", "agent_id", "task_description", "task_key"
        ),
        sa.Column("attempt_number", sa.Integer(), nullable=False),
        *_smalls("outcome"),
        *_texts(
            "what_worked",
            "what_did_not_work",
            "next_strategy",
            "tags",
            "related_entity_ids",
            "applied_reflection_ids",
        ),
        *_numbers("created_at"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "reflections_by_project", "reflections", ["tenant_id", "project", "created_at", "id"]
    )
    op.create_index(
        "reflections_by_session", "reflections", ["tenant_id", "session_id", "created_at", "id"]
    )
    op.create_index("reflections_by_time", "reflections", ["tenant_id", "created_at", "id"])
    op.create_table(
        "reflection_tags",
        *_texts("tenant_id", "tag", "reflection_id"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "reflection_id"],
            ["reflections.tenant_id", "reflections.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "reflection_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "reflection_tags_by_reflection", "reflection_tags", ["tenant_id", "reflection_id"]
    )
    op.create_table(
        "sayings",
        *_texts("tenant_id", "reflection_id"),
        *_flags("worked"),
        sa.Column("place", sa.Integer(), nullable=False),
        *_texts("text"),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "reflection_id"],
            ["reflections.tenant_id", "reflections.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "reflection_id", "worked", "place"),
    )
    op.create_table(
        "knowledge",
        *_texts("tenant_id", "id", "project", "agent_id"),
        *_smalls("type"),
        *_texts("context", "command", "lesson", "success_rate", "tags"),
        *_numbers("timestamp"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("knowledge_by_project", "knowledge", ["tenant_id", "project", "timestamp"])


def _make_context() -> None:
    op.create_table(
        "session_summaries",
        *_texts(
            "tenant_id",
            "session_id",
            "summary",
            "topics",
            "tools",
            "tool_sequence",
            "error_summary",
            "errors",
            "files",
        ),
        *_smalls("outcome"),
        *_numbers("created_at", "updated_at"),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
    )
    op.create_table(
        "handovers",
        *_texts("tenant_id", "session_id", "project", "agent_id", "content"),
        sa.Column("weight", sa.Integer(), nullable=False),
        *_numbers("duration_seconds"),
        *_texts("summary"),
        *_numbers("created_at"),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
    )
    op.create_index(
        "handovers_by_project", "handovers", ["tenant_id", "project", "created_at", "session_id"]
    )
    op.create_index("handovers_by_time", "handovers", ["tenant_id", "created_at", "session_id"])
    op.create_table(
        "summary_queue",
        *_texts("tenant_id", "session_id"),
        *_numbers("due_at"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *_texts("last_error"),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("summary_queue_by_time", "summary_queue", ["tenant_id", "due_at"])


def _make_figures() -> None:
    op.create_table(
        "settings",
        *_texts("tenant_id", "key", "value"),
        sa.PrimaryKeyConstraint("tenant_id", "key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "counters",
        *_texts("tenant_id", "name"),
        *_numbers("value"),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "totals",
        *_texts("tenant_id", "name"),
        *_numbers("value"),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )


def _columns(
    kind: Callable[[], sa.types.TypeEngine[Any]], names: tuple[str, ...]
) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind(), nullable=False) for name in names]


def _texts(*names: str) -> list[sa.Column[Any]]:
    return _columns(sa.Text, names)


def _numbers(*names: str) -> list[sa.Column[Any]]:
    return _columns(sa.BigInteger, names)


def _smalls(*names: str) -> list[sa.Column[Any]]:
    return _columns(sa.SmallInteger, names)


def _reals(*names: str) -> list[sa.Column[Any]]:
    return _columns(sa.Float, names)


def _flags(*names: str) -> list[sa.Column[Any]]:
    return _columns(sa.Boolean, names)
