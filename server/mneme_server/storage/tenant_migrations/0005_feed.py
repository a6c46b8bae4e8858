"""The feed: a row for each commit that changes what is searched, and how far followers came."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_BITS = 63


def upgrade() -> None:
    _make_the_feed()


def _make_the_feed() -> None:
    feed = op.create_table(
        "feed",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "followers",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )
    settings = sa.table("settings", *map(sa.column, ("tenant_id", "key", "value")))
    connection = op.get_bind()
    for (tenant_id,) in connection.execute(sa.select(settings.c.tenant_id).distinct()).all():
        # What was there before has no row of its own: who follows begins behind this one.
        connection.execute(
            feed.insert(),
            {
                "tenant_id": tenant_id,
                "number": 1,
                "mark": secrets.randbits(_BITS),
                "changes": '{"everything":true}',
            },
        )
        connection.execute(
            settings.insert(),
            {
                "tenant_id": tenant_id,
                "key": "generation",
                "value": f"{secrets.randbits(_BITS):016x}",
            },
        )
