"""What sessions exported when they ended: what it is, and its bytes in chunks."""

import sqlalchemy as sa
from alembic import op

revision = "learning_0003"
down_revision = "learning_0002"


def upgrade() -> None:
    op.create_table(
        "learning_exports",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("exported_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session"),
    )
    op.create_table(
        "learning_export_chunks",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session", "number"),
    )
