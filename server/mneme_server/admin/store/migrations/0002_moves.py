"""Where tenants live that were moved, and those that are being moved here."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "tenant_moves",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("moved_at", sa.BigInteger, nullable=False),
    )
