"""How many bytes spans take that wait, so that a tenant's inbox has a quota. Of those that wait
already their characters are counted."""

import sqlalchemy as sa
from alembic import op

revision = "otlp_0002"
down_revision = "otlp_0001"


def upgrade() -> None:
    op.add_column(
        "otlp_inbox", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.execute("UPDATE otlp_inbox SET bytes = length(span)")
    op.create_index("otlp_inbox_by_size", "otlp_inbox", ["tenant_id", "bytes"])
