"""The log: tiles, leaves, and where to find them. Certificates, and what each shows."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0100"
down_revision = None
branch_labels = ("proof",)


def upgrade() -> None:
    _make_the_log()
    _make_certificates()


def _make_the_log() -> None:
    op.create_table(
        "log_tiles",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "level", "number"),
    )
    op.create_table(
        "log_leaves",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("leaf", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=True),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("logged_at", sa.BigInteger(), nullable=False),
        sa.Column("forgotten_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "leaf"),
    )
    op.create_index(
        "log_leaves_by_source", "log_leaves", ["tenant_id", "kind", "source_id", "leaf"]
    )
    op.create_table(
        "log_runs",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("first_leaf", sa.BigInteger(), nullable=False),
        sa.Column("leaves", sa.BigInteger(), nullable=False),
        sa.Column("first_doc", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "first_leaf"),
    )
    op.create_index("log_runs_by_document", "log_runs", ["tenant_id", "first_doc"])
    op.create_table(
        "log_state",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key"),
        sqlite_with_rowid=False,
    )


def _make_certificates() -> None:
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
        sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index(
        "certificates_by_time", "certificates", ["tenant_id", "created_at", "id", "bytes"]
    )
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
