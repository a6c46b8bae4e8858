"""How many bytes certificates take, so that a tenant's have a quota. Of those that are there
already their characters are counted: the index is read alone to add them up."""

import sqlalchemy as sa
from alembic import op

revision = "proof_0003"
down_revision = "proof_0002"


def upgrade() -> None:
    op.add_column(
        "certificates", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.execute("UPDATE certificates SET bytes = length(text)")
    op.drop_index("certificates_by_time", "certificates")
    op.create_index(
        "certificates_by_time", "certificates", ["tenant_id", "created_at", "id", "bytes"]
    )
