"""What the place of memories in their user's profile goes by, and the days that confirmed them."""

import sqlalchemy as sa
from alembic import op

revision = "memory_0101"
down_revision = "memory_0100"

_HIGH = 3
_BY_IMPORTANCE = 100_000


def upgrade() -> None:
    op.add_column(
        "memories", sa.Column("pinned", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    for name, kind in (
        ("confirmed_count", sa.Integer()),
        ("last_said", sa.BigInteger()),
        ("standing", sa.Integer()),
    ):
        op.add_column("memories", sa.Column(name, kind, nullable=False, server_default="0"))
    op.create_table(
        "memory_confirmations",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "memory_id", "day"),
        sqlite_with_rowid=False,
    )
    memories = sa.table(
        "memories",
        sa.column("importance"), sa.column("since"), sa.column("last_said"), sa.column("standing"),
    )  # fmt: skip
    important = memories.c.importance >= _HIGH
    op.execute(
        memories.update().values(
            last_said=memories.c.since,
            standing=sa.case((important, memories.c.importance * _BY_IMPORTANCE), else_=0),
        )
    )
    op.create_index(
        "memories_by_standing",
        "memories",
        [
            "tenant_id", "user_id", "superseded_by", "standing", "last_said", "digest", "since",
            "agent_id", "project",
        ],
    )  # fmt: skip
