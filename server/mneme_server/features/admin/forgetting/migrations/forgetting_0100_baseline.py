"""Table of forgettings, and who signed for them."""

import sqlalchemy as sa
from alembic import op

revision = "forgetting_0100"
down_revision = None
branch_labels = ("forgetting",)


def upgrade() -> None:
    op.create_table(
        "forgettings",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("policies", sa.Text(), nullable=False),
        sa.Column("leaves", sa.Text(), nullable=False),
        sa.Column("hidden_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("places", sa.Text(), nullable=False, server_default="{}"),
        sa.Column("mark", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
