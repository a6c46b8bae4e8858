"""No statement without its tenant.

With a file per tenant a forgotten `WHERE` cannot reach another tenant's rows; where tenants share a
database it could. So every statement that touches a tenant's table must bind that table's
`tenant_id` to the tenant of the transaction, and one that does not is refused before it runs, here
as there. `storage.binding` reads the structure of statements; that is done once for each, and a
call only compares parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Insert, Row, Select, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler

from mneme_server.storage.binding import TenantNotBound, tenant_parameters
from mneme_server.storage.schema import metadata

__all__ = ["Prepared", "TenantNotBound", "require_tenant"]

_BOUNDS_OF_TRANSACTIONS = frozenset({"BEGIN", "BEGIN IMMEDIATE"})

_prepared: dict[str, Sequence[int]] = {}
"""Of statements that go straight to the driver: the places of the parameters with the tenant."""
_KEPT = 4096
_read: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
"""What was found in statements, by their SQL and its parameters: tenants opened later run the same
statements, each compiled for a database of its own."""


class Prepared:
    """A statement that is compiled once and goes straight to the driver.

    Says the same as `connection.execute(statement, …)` without SQLAlchemy's work for each row and
    call, which costs more than the database's own. For those that run all the time.

    Args:
        statement: the statement. Its parameters without a value are given with each call.
        names: for an INSERT, the columns that its rows name.

    Raises:
        TenantNotBound: it does not say whose rows it means.
    """

    def __init__(self, statement: Insert | Select[Any], names: Collection[str] = ()) -> None:
        compiled = statement.compile(
            dialect=_dialect(),
            column_keys=list(names) or None,
            for_executemany=isinstance(statement, Insert),
        )
        assert isinstance(compiled, SQLCompiler)
        order = compiled.positiontup or ()
        tenant = tenant_parameters(compiled, metadata.tables.keys())
        self._sql = str(compiled)
        assert len(order) > 1  # Or `itemgetter` returns no tuple.
        self._values = itemgetter(*order)
        self._fixed = dict(compiled.params)
        _prepared[self._sql] = [place for place, name in enumerate(order) if name in tenant]

    def insert(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it for each row."""
        connection.exec_driver_sql(self._sql, list(map(self._values, rows)))

    def first(self, connection: Connection, given: Mapping[str, Any]) -> Row[Any] | None:
        """Run it and return the first row, if there is one."""
        values = self._values({**self._fixed, **given})
        return connection.exec_driver_sql(self._sql, values).first()


def require_tenant(
    engine: Engine, tables: Collection[str], tenant_of: Callable[[Connection], str]
) -> None:
    """Refuse statements on `engine` that touch one of `tables` without binding its tenant.

    Args:
        engine: what runs statements.
        tables: the names of all tables that hold tenants' data.
        tenant_of: tells whose transaction a connection is in.
    """
    guarded = frozenset(tables)
    known: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()

    @event.listens_for(engine, "before_cursor_execute")
    def check(
        connection: Connection, _cursor: Any, statement: str, parameters: Any, context: Any, _: bool
    ) -> None:
        compiled = context.compiled
        if compiled is None:
            _check_driver_statement(statement, parameters, tenant_of(connection))
            return
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


def _check_driver_statement(statement: str, parameters: Any, tenant_id: str) -> None:
    """Let only those through that were prepared, and those that hold no SQL of ours."""
    if statement in _BOUNDS_OF_TRANSACTIONS:
        return
    places = _prepared.get(statement)
    if places is None:
        raise TenantNotBound(f"SQL that is text: {statement}")
    rows = parameters if isinstance(parameters, list) else [parameters]
    for place in places:
        if any(row[place] != tenant_id for row in rows):
            raise TenantNotBound(f"another tenant is bound in: {statement}")


@cache
def _dialect() -> Any:
    return sqlite.dialect()
