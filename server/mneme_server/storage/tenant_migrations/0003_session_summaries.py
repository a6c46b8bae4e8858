"""Summaries of sessions, the queue of those to make, and handovers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
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
    # Recall asks for a handful of documents by number: without this SQLite, which knows nothing of
    # how many rows a tenant has, reads all of them.
    op.create_index("documents_by_id", "documents", ["tenant_id", "doc_id"])
    op.create_index("sessions_by_project", "sessions", ["tenant_id", "project", "started_at"])
    # Sessions of before get their summaries, too; those that are active when they fall idle.
    op.execute(
        "INSERT INTO summary_queue (tenant_id, session_id, due_at, attempts, last_error)"
        " SELECT tenant_id, id, 0, 0, '' FROM sessions"
    )
