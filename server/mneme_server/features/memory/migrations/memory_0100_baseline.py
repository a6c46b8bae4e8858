"""Memories, with their labels and the values in their metadata."""

import sqlalchemy as sa
from alembic import op

revision = "memory_0100"
down_revision = None
branch_labels = ("memory",)


def upgrade() -> None:
    op.create_table(
        "memories",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("superseded_by", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("memories_by_since", "memories", ["tenant_id", "since", "id"])
    op.create_index("memories_by_user", "memories", ["tenant_id", "user_id", "since", "id"])
    op.create_index("memories_by_digest", "memories", ["tenant_id", "digest"])
    op.create_index("memories_by_successor", "memories", ["tenant_id", "superseded_by"])
    for table, columns, numbers in (
        ("memory_tags", ("tag",), ()),
        (
            "memory_values",
            ("key", "value"),
            (sa.Column("doc_id", sa.BigInteger(), nullable=False),),
        ),
    ):
        op.create_table(
            table,
            sa.Column("tenant_id", sa.Text(), nullable=False),
            *(sa.Column(name, sa.Text(), nullable=False) for name in columns),
            sa.Column("memory_id", sa.Text(), nullable=False),
            *numbers,
            sa.ForeignKeyConstraint(
                ["tenant_id", "memory_id"],
                ["memories.tenant_id", "memories.id"],
                ondelete="CASCADE",
            ),
            sa.PrimaryKeyConstraint("tenant_id", *columns, "memory_id"),
            sqlite_with_rowid=False,
        )
        op.create_index(f"{table}_by_memory", table, ["tenant_id", "memory_id"])
