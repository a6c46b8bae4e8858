"""Which keys let the operator of the machine in, and are replaced by the next one."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_OF_THE_OPERATOR = ("MNEME_ADMIN_KEY", "bootstrap")


def upgrade() -> None:
    """Add the column; keys that look as a server's start makes them are such."""
    op.add_column(
        "api_keys",
        sa.Column("bootstrap", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    keys = sa.table(
        "api_keys",
        sa.column("tenant_id", sa.String),
        sa.column("name", sa.String),
        sa.column("scopes", sa.String),
        sa.column("rate_limit", sa.Integer),
        sa.column("bootstrap", sa.Boolean),
    )
    op.execute(
        keys.update()
        .where(
            keys.c.tenant_id == "default",
            keys.c.name.in_(_OF_THE_OPERATOR),
            keys.c.scopes == "read,write,learn,admin",
            keys.c.rate_limit == 0,
        )
        .values(bootstrap=True)
    )
