"""The inbox of spans, and what is known of those that became events."""

import sqlalchemy as sa
from alembic import op

revision = "otlp_0100"
down_revision = None
branch_labels = ("otlp",)


def upgrade() -> None:
    op.create_table(
        "otlp_inbox",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "id", "trace_id", "session_id", "user_id", "span")
        ),
        sa.Column("patient", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_index("otlp_inbox_by_due", "otlp_inbox", ["tenant_id", "due_at"])
    op.create_index("otlp_inbox_by_size", "otlp_inbox", ["tenant_id", "bytes"])
    op.create_index("otlp_inbox_by_trace", "otlp_inbox", ["tenant_id", "trace_id"])
    op.create_table(
        "otlp_known",
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("tenant_id", "trace_id", "span_id", "parent_id", "session_id", "kind")
        ),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.Column("kept_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "trace_id", "span_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("otlp_known_by_time", "otlp_known", ["tenant_id", "kept_at"])
    op.create_index("otlp_known_by_session", "otlp_known", ["tenant_id", "session_id"])
