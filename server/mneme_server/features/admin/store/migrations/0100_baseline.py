"""Tenants, where they are, and API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("display_name", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("dirty", sa.Boolean, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column(
            "tenant_id", sa.String, sa.ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("key_hash", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("prefix", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("scopes", sa.String, nullable=False),
        sa.Column("rate_limit", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("bootstrap", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("ix_api_keys_tenant_created", "api_keys", ["tenant_id", "created_at", "id"])
    op.create_index("ix_api_keys_created", "api_keys", ["created_at", "id"])
    # Tenants that were moved to another server or folder, and those that are being moved here.
    op.create_table(
        "tenant_moves",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("moved_at", sa.BigInteger, nullable=False),
    )
    # Where the rows of tenants are that were moved while they were served.
    op.create_table(
        "tenant_places",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("place", sa.String, nullable=False),
        sa.Column("other", sa.String),
        sa.Column("move", sa.String, nullable=False),
    )
