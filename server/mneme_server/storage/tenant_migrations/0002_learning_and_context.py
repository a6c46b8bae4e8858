"""Reflections, the knowledge log, counters, summaries of sessions and handovers."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "knowledge",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("repo", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("lesson", sa.Text(), nullable=False),
        sa.Column("success_rate", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "knowledge_by_repo", "knowledge", ["tenant_id", "repo", "timestamp"], unique=False
    )
    op.create_table(
        "reflections",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("task_description", sa.Text(), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("attempt_number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("what_worked", sa.Text(), nullable=False),
        sa.Column("what_did_not_work", sa.Text(), nullable=False),
        sa.Column("next_strategy", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("related_entity_ids", sa.Text(), nullable=False),
        sa.Column("applied_reflection_ids", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "reflections_by_project",
        "reflections",
        ["tenant_id", "project", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "reflections_by_session",
        "reflections",
        ["tenant_id", "session_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "reflections_by_time", "reflections", ["tenant_id", "created_at", "id"], unique=False
    )
    op.create_table(
        "reflection_tags",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("reflection_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "reflection_id"],
            ["reflections.tenant_id", "reflections.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "reflection_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "reflection_tags_by_reflection",
        "reflection_tags",
        ["tenant_id", "reflection_id"],
        unique=False,
    )
    op.create_table(
        "sayings",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("reflection_id", sa.Text(), nullable=False),
        sa.Column("worked", sa.Boolean(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "reflection_id"],
            ["reflections.tenant_id", "reflections.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "reflection_id", "worked", "place"),
    )
    op.create_table(
        "session_summaries",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("topics", sa.Text(), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("tool_sequence", sa.Text(), nullable=False),
        sa.Column("error_summary", sa.Text(), nullable=False),
        sa.Column("errors", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
    )
    op.create_table(
        "handovers",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("duration_seconds", sa.BigInteger(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
    )
    op.create_index(
        "handovers_by_project", "handovers", ["tenant_id", "project", "created_at", "session_id"]
    )
    op.create_index("handovers_by_time", "handovers", ["tenant_id", "created_at", "session_id"])
    op.create_table(
        "summary_queue",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "session_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("summary_queue_by_time", "summary_queue", ["tenant_id", "due_at"])
    op.create_index("sessions_by_project", "sessions", ["tenant_id", "project", "started_at"])
    # Sessions of before get their summaries, too; those that are active when they fall idle.
    op.execute(
        "INSERT INTO summary_queue (tenant_id, session_id, due_at, attempts, last_error)"
        " SELECT tenant_id, id, 0, 0, '' FROM sessions"
    )
