"""Which key started an operation."""

import sqlalchemy as sa
from alembic import op

revision = "operations_0002"
down_revision = "operations_0001"


def upgrade() -> None:
    op.add_column("operations", sa.Column("key_id", sa.String(), nullable=False, server_default=""))
