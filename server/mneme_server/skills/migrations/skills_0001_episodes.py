"""The tables of episodes."""

import sqlalchemy as sa
from alembic import op

revision = "skills_0001"
down_revision = None
branch_labels = ("skills",)


def upgrade() -> None:
    op.create_table(
        "episodes",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in (
                "tenant_id", "id", "session_id", "agent_id", "user_id", "project", "task", "input",
                "output", "critique",
            )
        ),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("latency_ms", sa.BigInteger(), nullable=True),
        sa.Column("tokens_used", sa.BigInteger(), nullable=True),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("filled", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )  # fmt: skip
    op.create_index("episodes_by_time", "episodes", ["tenant_id", "occurred_at", "id"])
    op.create_index(
        "episodes_by_session", "episodes", ["tenant_id", "session_id", "occurred_at", "id"]
    )
    op.create_table(
        "episode_tags",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "tag", "episode_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "episode_id"], ["episodes.tenant_id", "episodes.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "episode_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("episode_tags_by_episode", "episode_tags", ["tenant_id", "episode_id"])
