"""Table of what is left of forgotten events: their places in the chains."""

import sqlalchemy as sa
from alembic import op

revision = "events_0100"
down_revision = None
branch_labels = ("events",)


def upgrade() -> None:
    op.create_table(
        "forgotten_sessions",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("event_count", sa.BigInteger(), nullable=False),
        sa.Column("head_hash", sa.Text(), nullable=False),
        sa.Column("forgotten_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "forgotten_events",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("prev_hash", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("hash_version", sa.SmallInteger(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("forgotten_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session", "sequence"),
        sqlite_with_rowid=False,
    )
    op.create_index("forgotten_events_by_event", "forgotten_events", ["tenant_id", "event"])
