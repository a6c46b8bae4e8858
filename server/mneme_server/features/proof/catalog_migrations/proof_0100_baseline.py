"""The keys of tenants' logs, and the newest head that was signed of each log. Private keys are here
where servers share the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0100"
down_revision = None
branch_labels = ("proof",)


def upgrade() -> None:
    op.create_table(
        "log_keys",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("public_key", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("retired_at", sa.BigInteger),
        sa.Column("introduction", sa.Text, nullable=False),
    )
    op.create_table(
        "log_heads",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("origin", sa.String, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("root", sa.LargeBinary, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_log_heads_origin", "log_heads", ["tenant_id", "origin"], unique=True)
    op.create_table(
        "log_private_keys",
        sa.Column("tenant_id", sa.String, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("pem", sa.LargeBinary, nullable=False),
    )
