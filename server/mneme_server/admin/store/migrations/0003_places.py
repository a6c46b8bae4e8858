"""Where the rows of tenants are that were moved while they were served."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "tenant_places",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("other", sa.String),
        sa.Column("move", sa.String, nullable=False),
    )
