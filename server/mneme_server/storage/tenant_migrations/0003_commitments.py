"""Hash versions of events, their salts and commitments. Events recorded before keep version 1."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "events", sa.Column("hash_version", sa.SmallInteger(), server_default="1", nullable=False)
    )
    op.add_column("events", sa.Column("salt", sa.LargeBinary(), nullable=True))
    op.add_column("events", sa.Column("commitment", sa.LargeBinary(), nullable=True))
