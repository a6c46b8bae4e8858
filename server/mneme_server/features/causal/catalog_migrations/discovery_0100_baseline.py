"""When tenants have the server discover by itself."""

import sqlalchemy as sa
from alembic import op

revision = "discovery_0100"
down_revision = None
branch_labels = ("discovery",)


def upgrade() -> None:
    op.create_table(
        "discovery_schedules",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("minute", sa.Integer, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("next_at", sa.BigInteger),
        sa.Column("last_at", sa.BigInteger),
        sa.Column("last_operation", sa.String, nullable=False),
    )
    op.create_index("ix_discovery_schedules_next", "discovery_schedules", ["next_at"])
