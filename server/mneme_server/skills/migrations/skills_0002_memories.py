"""The memories that episodes rest on."""

import sqlalchemy as sa
from alembic import op

revision = "skills_0002"
down_revision = "skills_0001"
depends_on = "memory_0001"


def upgrade() -> None:
    op.create_table(
        "episode_memories",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "memory_id", "episode_id")
        ),
        *(
            sa.ForeignKeyConstraint(
                ["tenant_id", column], [f"{table}.tenant_id", f"{table}.id"], ondelete="CASCADE"
            )
            for column, table in (("memory_id", "memories"), ("episode_id", "episodes"))
        ),
        sa.PrimaryKeyConstraint("tenant_id", "memory_id", "episode_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("episodes_by_reward", "episodes", ["tenant_id", "reward"])
    op.create_index("episode_memories_by_episode", "episode_memories", ["tenant_id", "episode_id"])
