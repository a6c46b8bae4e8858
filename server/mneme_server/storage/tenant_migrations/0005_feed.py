"""The feed: a row for each commit that changes what is searched, and how far followers came. What
filters look at, and the shape by which near-copies are known. Totals, instead of counting."""

import secrets

import sqlalchemy as sa
from alembic import op
from mneme_server.common.masking import shape_of

revision = "0005"
down_revision = "0004"

_BITS = 63


def upgrade() -> None:
    _make_the_feed()
    _add_facets()
    _keep_totals()


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


# Whose amounts and ids matter; those of the others tell copies apart.
_SPOKEN = ("", "message", "llm_call", "llm_response", "custom")


def _add_facets() -> None:
    for name in ("type", "name", "role"):
        op.add_column("documents", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "documents", sa.Column("severity", sa.SmallInteger(), nullable=False, server_default="0")
    )
    op.add_column(
        "documents", sa.Column("shape", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column("documents", sa.Column("value", sa.Float(), nullable=False, server_default="0"))
    # What is damaged in an event stays out of its document, which can be found all the same.
    op.execute(
        """
        UPDATE documents SET
            type = CASE typeof(events.event_type) WHEN 'text' THEN events.event_type ELSE '' END,
            name = CASE typeof(events.name) WHEN 'text' THEN events.name ELSE '' END,
            severity = CASE WHEN events.severity IN (1, 2, 3, 4, 5) THEN events.severity ELSE 0 END,
            role = CASE
                WHEN json_valid(events.payload)
                    AND json_type(events.payload, '$.role') = 'text'
                    AND length(json_extract(events.payload, '$.role')) BETWEEN 1 AND 64
                THEN CASE lower(json_extract(events.payload, '$.role'))
                    WHEN 'human' THEN 'user'
                    WHEN 'ai' THEN 'assistant'
                    WHEN 'model' THEN 'assistant'
                    ELSE lower(json_extract(events.payload, '$.role'))
                END
                WHEN events.event_type = 'llm_response' THEN 'assistant'
                ELSE ''
            END
        FROM events
        WHERE documents.kind = 'event'
            AND events.tenant_id = documents.tenant_id
            AND events.id = documents.source_id
        """
    )
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.create_function("shape_of", 1, shape_of, deterministic=True)
    op.execute(
        sa.text(
            "UPDATE documents SET shape = shape_of(text)"
            " WHERE kind = 'event' AND typeof(text) = 'text' AND category NOT IN :spoken"
        ).bindparams(sa.bindparam("spoken", _SPOKEN, expanding=True))
    )


# What is counted: its name, its table, and which of its rows.
_COUNTED = (
    ("events", "events", ""),
    ("sessions", "sessions", ""),
    ("agents", "agents", ""),
    ("lessons", "lessons", " WHERE archived_at IS NULL"),
    ("lessons_archived", "lessons", " WHERE archived_at IS NOT NULL"),
    ("reflections", "reflections", ""),
)


def _keep_totals() -> None:
    op.create_table(
        "totals",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name"),
        sqlite_with_rowid=False,
    )
    for name, table, which in _COUNTED:
        op.execute(
            "INSERT INTO totals (tenant_id, name, value)"
            f" SELECT tenant_id, '{name}', count(*) FROM {table}{which} GROUP BY tenant_id"
        )
    op.create_index(
        "embeddings_that_failed",
        "embedding_queue",
        ["tenant_id"],
        sqlite_where=sa.text("attempts > 0"),
        postgresql_where=sa.text("attempts > 0"),
    )
