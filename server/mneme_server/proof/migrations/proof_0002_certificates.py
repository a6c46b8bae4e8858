"""Certificates, and what each shows."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0002"
down_revision = "proof_0001"


def upgrade() -> None:
    op.create_table(
        "certificates",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("certificates_by_time", "certificates", ["tenant_id", "created_at", "id"])
    op.create_table(
        "certificate_items",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("certificate_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "certificate_id"],
            ["certificates.tenant_id", "certificates.id"],
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "kind", "source_id", "certificate_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "certificate_items_by_certificate", "certificate_items", ["tenant_id", "certificate_id"]
    )
