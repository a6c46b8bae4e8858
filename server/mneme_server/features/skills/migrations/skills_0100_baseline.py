"""Episodes, with the memories that they rest on, and skills."""

import sqlalchemy as sa
from alembic import op

revision = "skills_0100"
down_revision = None
branch_labels = ("skills",)
depends_on = "memory_0100"


def upgrade() -> None:
    _make_episodes()
    _make_skills()


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _owned(column: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", column], [f"{table}.tenant_id", f"{table}.id"], ondelete="CASCADE"
    )


def _make_episodes() -> None:
    op.create_table(
        "episodes",
        *_texts("tenant_id", "id", "session_id", "agent_id", "user_id", "project", "task"),
        *_texts("input", "output", "critique"),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("latency_ms", sa.BigInteger(), nullable=True),
        sa.Column("tokens_used", sa.BigInteger(), nullable=True),
        *_texts("tools", "tags", "metadata"),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *_texts("filled"),
        sa.Column("task_vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("episodes_by_reward", "episodes", ["tenant_id", "reward"])
    op.create_index("episodes_by_time", "episodes", ["tenant_id", "occurred_at", "id"])
    op.create_index(
        "episodes_by_session", "episodes", ["tenant_id", "session_id", "occurred_at", "id"]
    )
    op.create_table(
        "episode_tags",
        *_texts("tenant_id", "tag", "episode_id"),
        _owned("episode_id", "episodes"),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "episode_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("episode_tags_by_episode", "episode_tags", ["tenant_id", "episode_id"])
    op.create_table(
        "episode_memories",
        *_texts("tenant_id", "memory_id", "episode_id"),
        _owned("memory_id", "memories"),
        _owned("episode_id", "episodes"),
        sa.PrimaryKeyConstraint("tenant_id", "memory_id", "episode_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("episode_memories_by_episode", "episode_memories", ["tenant_id", "episode_id"])


def _make_skills() -> None:
    op.create_table(
        "skills",
        *_texts("tenant_id", "id", "name", "description", "inputs", "outputs", "code", "project"),
        *_texts("tags", "metadata"),
        sa.Column("claimed_rate", sa.Float(), nullable=True),
        *_texts("reported", "learned"),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("edited", sa.Boolean(), nullable=False),
        *_texts("findings", "sources"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("skills_by_name", "skills", ["tenant_id", "name"], unique=True)
    op.create_table(
        "skill_tags",
        *_texts("tenant_id", "tag", "skill_id"),
        _owned("skill_id", "skills"),
        sa.PrimaryKeyConstraint("tenant_id", "tag", "skill_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("skill_tags_by_skill", "skill_tags", ["tenant_id", "skill_id"])
    op.create_table(
        "skill_uses",
        *_texts("tenant_id", "skill_id", "id"),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("reward", sa.Float(), nullable=True),
        sa.Column("latency_ms", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        _owned("skill_id", "skills"),
        sa.PrimaryKeyConstraint("tenant_id", "skill_id", "id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "skill_links",
        *_texts("tenant_id", "parent_id", "child_id"),
        sa.Column("relationship", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        *_texts("metadata"),
        _owned("parent_id", "skills"),
        _owned("child_id", "skills"),
        sa.PrimaryKeyConstraint("tenant_id", "parent_id", "child_id", "relationship"),
        sqlite_with_rowid=False,
    )
    op.create_index("skill_links_by_child", "skill_links", ["tenant_id", "child_id"])
