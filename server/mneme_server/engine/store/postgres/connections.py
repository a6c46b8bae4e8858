"""Connections to PostgreSQL: whose they are, how they open, and the pool that tenants share."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from mneme_server.common import deadline
from mneme_server.common.errors import FailedPrecondition, MnemeError, Reason, Unavailable
from mneme_server.common.lending import Lending
from mneme_server.engine.store.connections import TRANSLATE, Statements, translated
from mneme_server.engine.store.postgres.driver import (
    APPLICATION,
    KEPT_ALIVE,
    KEPT_ALIVE_THERE,
    NumberLoader,
    PsycopgConnection,
    meaning,
    postgres_of,
)

_STATEMENTS = Statements()
SCHEMA = "mneme"
"""Where the tenants' tables are."""
CATALOG = "mneme_catalog"
"""Where the tables of the server's catalog are."""
ROLE = "mneme_tenant"
"""What tenants' transactions run as: neither owns the tables nor is spared row-level security."""
_CONNECT_TIMEOUT_S = 10
_PATIENCE_S = 10.0
_RETRY_S = 0.5


def connect(url: str) -> PsycopgConnection:
    """Open a connection of the owner's: for what makes the schema.

    Raises:
        Unavailable: the database cannot be reached now.
    """
    try:
        given = conninfo_to_dict(url)
        connection: PsycopgConnection = PsycopgConnection.connect(
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


def hold(connection: PsycopgConnection, schema: str, knows: Collection[str]) -> None:
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
            that, see `engine.store.postgres.schema`. None: for what makes the schema.
    """

    def connected() -> PsycopgConnection:
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


@dataclass(frozen=True, slots=True)
class Begin:
    """What begins a transaction: of this tenant, by these statements, sent together."""

    tenant_id: str
    statements: sql.Composable


class Pool:
    """Lends connections, each in a transaction of its own. Thread-safe.

    Args:
        engine: opens the connections; its pool must keep none.
        most: so many at most; who finds none free waits for a while.

    Attributes:
        lending: how it lends them.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.lending = Lending()
        self._engine = engine
        self._free = threading.Semaphore(most)
        self._resting: list[Connection] = []  # To append and to pop is atomic.
        self._closed = False

    @contextmanager
    def transaction(self, begin: Begin) -> Iterator[Connection]:
        """Open a transaction, which is undone at the block's end unless it was committed.

        Raises:
            Unavailable: no connection became free in time, or the database cannot be reached.
        """
        if not self._free.acquire(blocking=False):
            self._wait()
        try:
            with self.lending.lent(), self._lent(begin) as connection:
                yield connection
        finally:
            self._free.release()

    def _wait(self) -> None:
        with self.lending.waiting():
            if deadline.taken(self._free, _PATIENCE_S):
                return
        raise Unavailable(
            "all connections to the database are in use",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )

    @contextmanager
    def _lent(self, begin: Begin) -> Iterator[Connection]:
        connection, driver = self._begun(begin)
        try:
            yield connection
        except driver.failures as error:  # Of a statement that went straight to the driver.
            raise translated(connection, "", (), error) from error
        finally:
            self._give_back(connection, driver)

    def open_ahead(self, count: int) -> None:
        """Have at least so many connections at rest: to open one takes longer than most of what is
        asked of it.

        Raises:
            Unavailable: the database cannot be reached.
        """
        while len(self._resting) < count:
            self._resting.append(self._engine.connect())

    def close(self) -> None:
        """Close the connections, those in use as soon as they are given back."""
        self._closed = True
        self._drop_resting()

    def _drop_resting(self) -> None:
        while self._resting:
            try:
                self._resting.pop().close()
            except IndexError:  # Another thread was faster.
                return

    def _begun(self, begin: Begin) -> tuple[Connection, PsycopgConnection]:
        """Return a connection in a transaction. One that rested may have been lost meanwhile, or
        hang, with all the others: then a new one is opened."""
        while True:
            try:
                connection, rested = self._resting.pop(), True
            except IndexError:
                connection, rested = self._engine.connect(), False
            driver = postgres_of(connection)
            driver.tenant_id = begin.tenant_id
            try:
                driver.execute(begin.statements)
            except driver.failures as error:
                lost = driver.broken
                meant = translated(connection, "BEGIN", (), error)
                self._give_back(connection, driver)
                if not (lost and rested):
                    raise meant from error
                self._drop_resting()
            else:
                return connection, driver

    def _give_back(self, connection: Connection, driver: PsycopgConnection) -> None:
        """Undo what was not committed: SQLAlchemy's, where it ran a statement, and the
        database's."""
        try:
            if not connection.invalidated:
                connection.rollback()
            driver.rollback()
        except (MnemeError, SQLAlchemyError, *driver.failures):
            pass  # It is lost, and dropped.
        if self._closed or connection.invalidated or driver.closed:
            connection.close()
        else:
            self._resting.append(connection)
