"""Table of what tenants were asked to forget."""

import sqlalchemy as sa
from alembic import op

revision = "forgotten_0100"
down_revision = None
branch_labels = ("forgotten",)


def upgrade() -> None:
    op.create_table(
        "forgetting_salts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id"),
    )
    op.create_table(
        "asked_to_forget",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("erased", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_asked_to_forget", "asked_to_forget", ["tenant_id", "id"], unique=True)
