"""The operations."""

import sqlalchemy as sa
from alembic import op

revision = "operations_0100"
down_revision = None
branch_labels = ("operations",)


def upgrade() -> None:
    op.create_table(
        "operations",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("scope", sa.Integer, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Integer, nullable=False),
        sa.Column("cancellable", sa.Boolean, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("progress", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("kept", sa.Text, nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("key_id", sa.String(), nullable=False, server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operations_key", "operations", ["owner", "id"], unique=True)
    op.create_index("ix_operations_tenant", "operations", ["tenant_id", "number"])
