"""The log: tiles, leaves, and where to find them. What is there already is logged afterwards, in
batches, by a job: so opening a large tenant does not wait for it."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0001"
down_revision = None
branch_labels = ("proof",)
depends_on = "0001"


def upgrade() -> None:
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
    op.execute(
        "INSERT INTO log_state (tenant_id, key, value)"
        " SELECT tenant_id, 'unlogged', CAST(max(doc_id) AS TEXT) FROM documents GROUP BY tenant_id"
    )
