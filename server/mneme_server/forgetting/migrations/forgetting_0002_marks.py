"""Who signed what was forgotten, so that nobody can mark anything as forgotten behind the server's
back."""

import sqlalchemy as sa
from alembic import op

revision = "forgetting_0002"
down_revision = "forgetting_0001"


def upgrade() -> None:
    op.add_column(
        "forgettings", sa.Column("places", sa.Text(), nullable=False, server_default="{}")
    )
    op.add_column("forgettings", sa.Column("mark", sa.Text(), nullable=True))
