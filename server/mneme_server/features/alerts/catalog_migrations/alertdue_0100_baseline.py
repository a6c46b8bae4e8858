"""When alerts of tenants are due."""

import sqlalchemy as sa
from alembic import op

revision = "alertdue_0100"
down_revision = None
branch_labels = ("alertdue",)


def upgrade() -> None:
    op.create_table(
        "alert_due",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("work", sa.String, primary_key=True),
        sa.Column("due_at", sa.BigInteger, nullable=False),
    )
