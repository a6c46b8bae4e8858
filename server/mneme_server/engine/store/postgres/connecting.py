"""Connections to PostgreSQL: whose they are, and how they are opened."""

from __future__ import annotations

from collections.abc import Collection

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import NullPool

from mneme_server.common.errors import FailedPrecondition, MnemeError, Reason
from mneme_server.engine.store.driver import TRANSLATE
from mneme_server.engine.store.postgres.driver import (
    APPLICATION,
    DriverConnection,
    NumberLoader,
    meaning,
)
from mneme_server.engine.store.postgres.hanging import KEPT_ALIVE, KEPT_ALIVE_THERE
from mneme_server.engine.store.statements import Statements

_STATEMENTS = Statements()

SCHEMA = "mneme"
"""Where the tenants' tables are."""

CATALOG = "mneme_catalog"
"""Where the tables of the server's catalog are."""

ROLE = "mneme_tenant"
"""What tenants' transactions run as: neither owns the tables nor is spared row-level security."""

_CONNECT_TIMEOUT_S = 10


def connect(url: str) -> DriverConnection:
    """Open a connection of the owner's: for what makes the schema.

    Raises:
        Unavailable: the database cannot be reached now.
    """
    try:
        given = conninfo_to_dict(url)
        connection: DriverConnection = DriverConnection.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name=APPLICATION,
            **{name: value for name, value in KEPT_ALIVE.items() if name not in given},
        )
        connection.url = url
        connection.execute(KEPT_ALIVE_THERE)
    except psycopg.Error as error:
        raise meaning(error) or error from error
    connection.adapters.register_loader("numeric", NumberLoader)
    connection.add_notice_handler(connection.note)
    return connection


def in_use(schema: str) -> str:
    """Return the name of the lock that is held, shared, by every connection that uses a schema."""
    return f"mneme: {schema} in use"


def hold(connection: DriverConnection, schema: str, knows: Collection[str]) -> None:
    """Keep a schema from being contracted while the connection lives.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, it was already, by a revision that is not known here.
        Unavailable: that takes long.
    """
    try:
        connection.execute(
            sql.SQL(
                "BEGIN; SET LOCAL lock_timeout = '10s';"
                " SELECT pg_advisory_lock_shared(hashtextextended({}, 0)); COMMIT"
            ).format(in_use(schema))
        )
        rows = connection.execute(
            sql.SQL("SELECT id FROM {}.revisions WHERE contracts").format(sql.Identifier(schema))
        ).fetchall()
    except psycopg.Error as error:
        raise meaning(error) or error from error
    unknown = sorted({str(revision) for (revision,) in rows}.difference(knows))
    if unknown:
        raise FailedPrecondition(
            f"the database's schema was brought to {', '.join(unknown)}, with which this version of"
            " Mneme cannot serve: start the newer one",
            reason=Reason.SCHEMA_ERROR,
            metadata={"schema": ",".join(unknown)},
        )


def engine_of(
    url: str, schema: str, role: str = "", *, knows: Collection[str] | None = None
) -> Engine:
    """Return an engine whose connections use the tables of a schema, as a role where one is named;
    else as the owner.

    Args:
        url: where the database is.
        schema: where the tables are.
        role: whose rights the connections have.
        knows: the revisions that those who use them know; they keep it from being contracted beyond
            that, see `upgrading`. None: for what makes the schema.
    """

    def connected() -> DriverConnection:
        connection = connect(url)
        if knows is not None:
            try:
                hold(connection, schema, knows)
            except BaseException:
                connection.close()
                raise
        # Durable before it is acknowledged, whatever the database is set to; a stricter setting,
        # one that waits for standbys, stays. Nothing is compiled: by its estimates PostgreSQL would
        # do so for pages that take it a tenth of a second, see `scanning`.
        settings = sql.SQL(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off';"
            " SET jit = off; SET search_path = {}"
        ).format(sql.Identifier(schema))
        if role:
            settings += sql.SQL("; SET ROLE {}").format(sql.Identifier(role))
        connection.execute(settings)
        return connection

    engine = create_engine(
        "postgresql+psycopg://",
        creator=connected,
        poolclass=NullPool,
        pool_reset_on_return=None,  # `Pool` has, and one that is lost could not be.
        paramstyle="format",  # In their order, as `engine.store.guard.Prepared` passes them.
        use_native_hstore=False,  # It would ask each connection for a type that is not used.
    )

    @event.listens_for(engine, "handle_error")
    def translate(context: ExceptionContext) -> MnemeError | None:
        return meaning(context.original_exception)

    engine.update_execution_options(**{TRANSLATE: meaning}, compiled_cache=_STATEMENTS)
    return engine


def vacuum(url: str, schema: str) -> None:
    """Take deleted rows out of the tables of a schema, as its owner.

    Raises:
        Unavailable: the database cannot be reached now.
    """
    with connect(url) as connection:
        try:
            names = connection.execute(
                "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables"
                " WHERE schemaname = %s",
                (schema,),
            ).fetchall()
            connection.execute(f"VACUUM {', '.join(name for (name,) in names)}")
        except psycopg.Error as error:
            raise meaning(error) or error from error
