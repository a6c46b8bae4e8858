"""Which key set the channels of a rule, and of a message that waits. Of what is there already,
nobody knows."""

import sqlalchemy as sa
from alembic import op

revision = "alerts_0002"
down_revision = "alerts_0001"


def upgrade() -> None:
    for table in ("alert_rules", "alert_deliveries"):
        op.add_column(table, sa.Column("key_id", sa.Text(), nullable=False, server_default=""))
