"""Patterns, and what was said of their matches."""

import sqlalchemy as sa
from alembic import op

revision = "patterns_0100"
down_revision = None
branch_labels = ("patterns",)
depends_on = "memory_0100"


def upgrade() -> None:
    op.create_table(
        "patterns",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "id", "name", "description", "definition")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in (
                "created_at", "uses", "matches", "took_us", "last_used_at", "right", "wrong",
            )
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )  # fmt: skip
    op.create_index("patterns_by_name", "patterns", ["tenant_id", "name"], unique=True)
    op.create_table(
        "pattern_verdicts",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "pattern_id", "memory_id")
        ),
        sa.Column("right", sa.Boolean(), nullable=False),
        sa.Column("judged_at", sa.BigInteger(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                ["tenant_id", column], [f"{table}.tenant_id", f"{table}.id"], ondelete="CASCADE"
            )
            for column, table in (("pattern_id", "patterns"), ("memory_id", "memories"))
        ),
        sa.PrimaryKeyConstraint("tenant_id", "pattern_id", "memory_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("pattern_verdicts_by_memory", "pattern_verdicts", ["tenant_id", "memory_id"])
