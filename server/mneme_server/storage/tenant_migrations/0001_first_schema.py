"""Sessions, events, agents, lessons, and what makes them recallable."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("session_count", sa.BigInteger(), nullable=False),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("tool_call_count", sa.BigInteger(), nullable=False),
        sa.Column("error_count", sa.BigInteger(), nullable=False),
        sa.Column("total_cost_usd", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "documents",
        sa.Column(
            "doc_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.SmallInteger(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("doc_id"),
        sa.UniqueConstraint("tenant_id", "scope", "source_id", name="documents_source"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "documents_by_session", "documents", ["tenant_id", "session_id", "position"], unique=False
    )
    op.create_table(
        "embedding_queue",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("doc_id", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "doc_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "lessons",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("source_session_id", sa.Text(), nullable=False),
        sa.Column("source_event_id", sa.Text(), nullable=False),
        sa.Column("access_count", sa.BigInteger(), nullable=False),
        sa.Column("last_accessed_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("archived_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "lessons_by_category", "lessons", ["tenant_id", "category", "updated_at"], unique=False
    )
    op.create_index("lessons_by_update", "lessons", ["tenant_id", "updated_at", "id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("last_event_at", sa.BigInteger(), nullable=True),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("tool_call_count", sa.BigInteger(), nullable=False),
        sa.Column("error_count", sa.BigInteger(), nullable=False),
        sa.Column("llm_call_count", sa.BigInteger(), nullable=False),
        sa.Column("total_cost_usd", sa.Float(), nullable=False),
        sa.Column("total_input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("total_output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("head_hash", sa.Text(), nullable=False),
        sa.Column("declared", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "sessions_by_agent", "sessions", ["tenant_id", "agent_id", "started_at"], unique=False
    )
    op.create_index(
        "sessions_by_start", "sessions", ["tenant_id", "started_at", "id"], unique=False
    )
    op.create_table(
        "settings",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "vectors",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("doc_id", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("tenant_id", "doc_id", name="vectors_document"),
        sqlite_autoincrement=True,
    )
    op.create_index("vectors_by_content", "vectors", ["tenant_id", "content_hash"], unique=False)
    op.create_table(
        "events",
        sa.Column(
            "cursor",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.SmallInteger(), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("duration", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("searchable", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("prev_hash", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.id"],
        ),
        sa.PrimaryKeyConstraint("cursor"),
        sa.UniqueConstraint("tenant_id", "id", name="events_id"),
        sa.UniqueConstraint("tenant_id", "session_id", "sequence", name="events_chain"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "events_by_agent", "events", ["tenant_id", "agent_id", "timestamp", "cursor"], unique=False
    )
    op.create_index(
        "events_by_session",
        "events",
        ["tenant_id", "session_id", "timestamp", "cursor"],
        unique=False,
    )
    op.create_index("events_by_time", "events", ["tenant_id", "timestamp", "cursor"], unique=False)
    op.create_index(
        "events_that_failed",
        "events",
        ["tenant_id", "timestamp", "cursor"],
        unique=False,
        sqlite_where=sa.text("severity >= 4"),
        postgresql_where=sa.text("severity >= 4"),
    )
    op.create_table(
        "lesson_tags",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("lesson_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lesson_id"], ["lessons.tenant_id", "lessons.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "lesson_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "lesson_tags_by_lesson", "lesson_tags", ["tenant_id", "lesson_id"], unique=False
    )
    op.create_table(
        "session_tags",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "session_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "session_tags_by_session", "session_tags", ["tenant_id", "session_id"], unique=False
    )
