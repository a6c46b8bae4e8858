"""Reflections, the knowledge log, and counters."""

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
