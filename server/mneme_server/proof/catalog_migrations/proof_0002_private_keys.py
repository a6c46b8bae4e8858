"""Private keys of tenants' logs, where servers share the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0002"
down_revision = "proof_0001"


def upgrade() -> None:
    op.create_table(
        "log_private_keys",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("pem", sa.LargeBinary, nullable=False),
    )
