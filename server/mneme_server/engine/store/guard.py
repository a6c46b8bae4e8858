"""No statement without its tenant.

With a file per tenant a forgotten `WHERE` cannot reach another tenant's rows; where tenants share a
database it could. So every statement that touches a tenant's table must bind that table's
`tenant_id` to the tenant of the transaction, and one that does not is refused before it runs, here
as there. `engine.store.binding` reads the structure of statements; that is done once for each, and
a call only compares parameters.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect, Engine, Insert, Row, Select, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler

from mneme_server.engine.store.binding import TenantNotBound, tenant_parameters
from mneme_server.engine.store.driver import DriverConnection, driver_of, failures_of, translated
from mneme_server.engine.store.schema import metadata

__all__ = ["Prepared", "TenantNotBound", "require_tenant"]

_TENANT_OF = "mneme_tenant_of"
"""The option of an engine that tells whose transaction a connection is in."""
_KEPT = 4096
_read: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
"""What was found in statements, by their SQL and its parameters: tenants opened later run the same
statements, each compiled for a database of its own."""


class Prepared:
    """A statement that is compiled once and goes straight to the driver.

    Says the same as `connection.execute(statement, …)` without SQLAlchemy's work for each row and
    call, which costs ten times what the database's own does. For those that run all the time. Its
    rows have names, as SQLAlchemy's.

    Args:
        statement: the statement. Its parameters without a value are given with each call.
        names: for an INSERT, the columns that its rows name.

    Raises:
        TenantNotBound: it does not say whose rows it means; when it runs, it binds another tenant.
    """

    def __init__(self, statement: Insert | Select[Any], names: Collection[str] = ()) -> None:
        self._statement, self._names = statement, names
        # For SQLite at once, so that a statement that is not bound is found when it is declared.
        self._compiled = {"sqlite": _Compiled(statement, names, _sqlite())}

    def insert(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it for each row."""
        self._for(connection).insert(connection, rows)

    def first(self, connection: Connection, given: Mapping[str, Any]) -> Row[Any] | None:
        """Run it and return the first row, if there is one."""
        rows = self._for(connection).rows(connection, given, 1)
        return rows[0] if rows else None

    def all(self, connection: Connection, given: Mapping[str, Any]) -> list[Row[Any]]:
        """Run it and return its rows."""
        return self._for(connection).rows(connection, given, None)

    def _for(self, connection: Connection) -> _Compiled:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = _Compiled(self._statement, self._names, dialect)
        return found


class _Compiled:
    """A prepared statement in the words of one kind of database."""

    def __init__(
        self, statement: Insert | Select[Any], names: Collection[str], dialect: Dialect
    ) -> None:
        compiled = statement.compile(
            dialect=dialect,
            column_keys=list(names) or None,
            for_executemany=isinstance(statement, Insert),
        )
        assert isinstance(compiled, SQLCompiler)
        order = compiled.positiontup or ()
        tenant = tenant_parameters(compiled, metadata.tables.keys())
        self._sql = str(compiled)
        self._values = _values_of(order)
        self._fixed = {n: v for n, v in compiled.params.items() if n not in names}
        self._places = [place for place, name in enumerate(order) if name in tenant]
        self._row: Callable[[Iterable[Any]], Any] | None = None
        self._statement, self._dialect = statement, dialect
        self._processed: dict[int, Callable[[Any], Any]] = {}

    def insert(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        if self._fixed:
            rows = [{**self._fixed, **row} for row in rows]
        values = list(map(self._values, rows))
        driver = self._driver(connection, values)
        try:
            driver.executemany(self._sql, values).close()
        except failures_of(driver) as error:
            raise translated(connection, self._sql, values, error) from error

    def rows(
        self, connection: Connection, given: Mapping[str, Any], most: int | None
    ) -> list[Row[Any]]:
        values = self._values({**self._fixed, **given})
        driver = self._driver(connection, [values])
        try:
            # Else it would go on reading behind the first row, or a damaged one.
            with closing(driver.execute(self._sql, values)) as cursor:
                found = cursor.fetchall() if most is None else cursor.fetchmany(most)
                if self._row is None:
                    self._read(cursor.description)
        except failures_of(driver) as error:
            raise translated(connection, self._sql, values, error) from error
        if self._processed:
            found = [self._process(row) for row in found]
        assert self._row is not None
        return list(map(self._row, found))

    def _read(self, description: Sequence[Sequence[Any]]) -> None:
        """Find out from the first result how its rows are read."""
        if isinstance(self._statement, Select):
            types = [column[1] for column in description]
            self._processed = _processors(self._statement, self._dialect, types)
        self._row = _named([column[0] for column in description])

    def _process(self, row: Sequence[Any]) -> Sequence[Any]:
        values = list(row)
        for place, process in self._processed.items():
            values[place] = process(values[place])
        return values

    def _driver(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> DriverConnection:
        """Return the driver's connection, if the rows bind the tenant of the transaction."""
        tenant_of = connection.get_execution_options().get(_TENANT_OF)
        if tenant_of is not None:
            tenant_id = tenant_of(connection)
            for place in self._places:
                if any(row[place] != tenant_id for row in rows):
                    raise TenantNotBound(f"another tenant is bound in: {self._sql}")
        driver = driver_of(connection)
        if not driver.in_transaction:
            connection.begin()  # As SQLAlchemy would. Each statement would be one of its own.
        return driver


def _named(names: Sequence[str]) -> Callable[[Iterable[Any]], Any]:
    """Return what makes rows with these names of values in their order."""
    make: Any = namedtuple  # Of names that mypy cannot know.
    made: Callable[[Iterable[Any]], Any] = make("Row", names, rename=True)._make
    return made


def _values_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


def _processors(
    statement: Select[Any], dialect: Dialect, types: Sequence[Any]
) -> dict[int, Callable[[Any], Any]]:
    """Return what makes values of what the driver returns, by their places, where that differs;
    `types` are the driver's own for the columns, where it has such."""
    made = (
        column.type.dialect_impl(dialect).result_processor(dialect, given)
        for column, given in zip(statement.selected_columns, types, strict=True)
    )
    return {place: process for place, process in enumerate(made) if process is not None}


def require_tenant(
    engine: Engine, tables: Collection[str], tenant_of: Callable[[Connection], str]
) -> None:
    """Refuse statements on `engine` that touch one of `tables` without binding its tenant.

    Args:
        engine: what runs statements.
        tables: the names of all tables that hold tenants' data.
        tenant_of: tells whose transaction a connection is in.
    """
    engine.update_execution_options(**{_TENANT_OF: tenant_of})
    guarded = frozenset(tables)
    known: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()

    @event.listens_for(engine, "before_cursor_execute")
    def check(
        connection: Connection, _cursor: Any, statement: str, parameters: Any, context: Any, _: bool
    ) -> None:
        compiled = context.compiled
        if compiled is None:
            raise TenantNotBound(f"SQL that is text: {statement}")
        names = known.get(compiled)
        if names is None:
            names = known[compiled] = _names(compiled, guarded)
        for given in context.compiled_parameters if names else ():
            for name in names:
                if given.get(name) != tenant_of(connection):
                    raise TenantNotBound(f"another tenant, or none, is bound in: {statement}")


def _names(compiled: Any, guarded: frozenset[str]) -> frozenset[str]:
    if not isinstance(compiled, SQLCompiler):
        raise TenantNotBound(f"a change of the schema: {compiled}")
    key = (compiled.string, tuple(compiled.positiontup or ()))
    found = _read.get(key)
    if found is None:
        try:
            found = tenant_parameters(compiled, guarded)
        except TenantNotBound as error:
            raise TenantNotBound(f"{error}, in: {compiled.string}") from None
        if len(_read) >= _KEPT:
            _read.clear()
        _read[key] = found
    return found


@cache
def _sqlite() -> Any:
    return sqlite.dialect()
