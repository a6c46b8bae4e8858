"""The guard that lets no statement run without its tenant.

With a file per tenant a forgotten `WHERE` cannot reach another tenant's rows; where tenants share a
database it could. So every statement that touches a tenant's table must bind that table's
`tenant_id` to the tenant of the transaction, and one that does not is refused before it runs, here
as there. The structure of a statement is read once (`tenant_parameters`), and a call only compares
parameters.

A `tenant_id` counts where it narrows what is read or changed and nowhere else: as one of the
conditions that must all hold (`a AND b`, never `a OR b`), equal to a parameter, or to a `tenant_id`
that is bound itself. What the analysis does not know is refused: a part written as text, a table
that nobody declared, a kind of statement or of element that is not in use here.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import (
    BindParameter,
    BooleanClauseList,
    ColumnClause,
    Connection,
    Delete,
    Dialect,
    Engine,
    FromClause,
    Insert,
    Join,
    Row,
    Select,
    SelectBase,
    TableClause,
    TextClause,
    Update,
    event,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression, ClauseElement, Grouping
from sqlalchemy.sql.selectable import AliasedReturnsRows, FromGrouping

from mneme_server.engine.store.connections import (
    DriverConnection,
    driver_of,
    failures_of,
    translated,
)
from mneme_server.engine.store.portable import ELEMENTS, Unindexed
from mneme_server.engine.store.schema import metadata

__all__ = ["Prepared", "TenantNotBound", "require_tenant"]
_TENANT_OF = "mneme_tenant_of"
"""The option of an engine that tells whose transaction a connection is in."""
_KEPT = 4096
_read: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
"""What was found in statements, by their SQL and its parameters: tenants opened later run the same
statements, each compiled for a database of its own."""
TENANT = "tenant_id"
_OF_THE_DATABASE = frozenset({"sqlite_sequence"})
"""Tables that hold no tenant's data, and that statements may read."""
_TEXTS = ("_prefixes", "_suffixes", "_hints", "_statement_hints")
_ON_CONFLICT_UPDATE = (sqlite.dml.OnConflictDoUpdate, postgresql.dml.OnConflictDoUpdate)


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


class TenantNotBound(AssertionError):
    """A statement reads or writes tenants' rows without saying whose. A bug."""


def tenant_parameters(compiled: SQLCompiler, guarded: Collection[str]) -> frozenset[str]:
    """Return the names of the parameters that must hold the tenant for the statement to be bound.

    None when it touches no tenant's table.

    Args:
        compiled: the statement.
        guarded: the names of the tables that hold tenants' data.

    Raises:
        TenantNotBound: it is not bound, whatever its parameters hold, or cannot be read.
    """
    statement = compiled.statement
    assert statement is not None
    reading = _Reading(compiled, guarded)
    if isinstance(statement, Insert):
        reading.insert(statement)
    elif isinstance(statement, Update | Delete):
        reading.change(statement)
    elif not isinstance(statement, SelectBase):
        raise TenantNotBound(f"a statement of a kind that is not in use: {type(statement)}")
    reading.elements(statement)
    return frozenset(reading.names)


class _Condition(NamedTuple):
    """`left = right` must hold of every row of the tables `narrows`."""

    left: Any
    right: Any
    narrows: Sequence[FromClause]


class _Reading:
    """One statement, read part by part; `names` grows by the parameters that bind its tenant."""

    def __init__(self, compiled: SQLCompiler, guarded: Collection[str]) -> None:
        self._compiled = compiled
        self._guarded = frozenset(name.lower() for name in guarded)
        self._bound: list[FromClause] = []
        self.names: set[str] = set()

    def elements(self, statement: ClauseElement) -> None:
        """Check every element of the statement, and every SELECT in it as a scope of its own."""
        columns: list[ColumnClause[Any]] = []
        for element in visitors.iterate(statement):
            if isinstance(element, Select):
                self._select(element)
            elif isinstance(element, Insert | Update | Delete) and element is not statement:
                raise TenantNotBound("a change inside another statement")
            elif isinstance(element, ColumnClause):
                columns.append(element)
            elif isinstance(element, _ON_CONFLICT_UPDATE):
                _check_conflict(element)
            _check_known(element, self._guarded)
        for column in columns:
            table = column.table
            if self._is_guarded(table) and not _among(table, self._bound) and not _is_new(table):
                raise TenantNotBound(f"{column} is of a table that is not read here")

    def insert(self, statement: Insert) -> None:
        """Check that every row that is inserted is the tenant's."""
        self._require_guarded(statement.table)
        self._bound.append(statement.table)
        if statement._multi_values:
            raise TenantNotBound("an INSERT with several rows in one statement")
        if statement.select is not None:
            self._inserted(statement.select, statement._select_names or [])
            return
        given = {_name(column): value for column, value in (statement._values or {}).items()}
        value = given.get(TENANT)
        if value is None or (isinstance(value, BindParameter) and value.unique):
            self._require(TENANT)  # Parameters are called as their columns are.
        elif isinstance(value, BindParameter):
            self._require(self._compiled.bind_names.get(value))
        else:
            raise TenantNotBound("an INSERT whose tenant is computed")

    def change(self, statement: Update | Delete) -> None:
        """Check that all rows that are changed, and those they are compared with, are the
        tenant's."""
        self._require_guarded(statement.table)
        if isinstance(statement, Update):
            changed = {*map(_name, dict(statement._values or {}))}
            if TENANT in changed.union(self._compiled.column_keys or ()):
                raise TenantNotBound("an UPDATE that gives rows to a tenant")
        tables: list[FromClause] = [statement.table]
        for element in _of_this_scope(statement):
            table = getattr(element, "table", None) if isinstance(element, ColumnClause) else None
            if table is not None and self._is_guarded(table) and not _among(table, tables):
                tables.append(table)
        self._scope(tables, list(_conditions(statement.whereclause, tables)))

    def _inserted(self, select: SelectBase, names: Sequence[Any]) -> None:
        """Check that what is selected to be inserted has the tenant in its place."""
        place = [_name(name) for name in names].index(TENANT) if TENANT in map(_name, names) else -1
        if place < 0 or not isinstance(select, Select):
            raise TenantNotBound("an INSERT that says no tenant, or takes rows of a UNION")
        value = list(select.selected_columns)[place]
        bound = self._select(select)
        if isinstance(value, BindParameter):
            self._require(self._compiled.bind_names.get(value))
        elif not any(_is_tenant_of(value, table) for table in bound):
            raise TenantNotBound("an INSERT whose tenant is that of no table it reads")

    def _select(self, select: Select[Any]) -> Sequence[FromClause]:
        """Check a SELECT by its own tables and conditions, without those around it; return the
        tenants' tables that it reads."""
        tables: list[FromClause] = []
        conditions: list[_Condition] = []
        for source in select.get_final_froms():
            tables += self._tables(source, conditions)
        conditions += _conditions(select.whereclause, tables)
        self._scope(tables, conditions)
        return tables

    def _tables(self, source: FromClause, conditions: list[_Condition]) -> list[FromClause]:
        """Return the tenants' tables of one item of FROM; add what its joins demand."""
        if isinstance(source, FromGrouping):
            return self._tables(source.element, conditions)
        if isinstance(source, Join):
            left = self._tables(source.left, conditions)
            right = self._tables(source.right, conditions)
            # An outer join keeps rows of which its condition does not hold.
            narrowed = [] if source.full else right if source.isouter else [*left, *right]
            conditions += _conditions(source.onclause, narrowed)
            return [*left, *right]
        return [source] if self._is_guarded(source) else []

    def _scope(self, tables: Sequence[FromClause], conditions: Sequence[_Condition]) -> None:
        """Find which tables the conditions bind, and refuse when one is left."""
        bound: list[FromClause] = []
        for table in [*tables] * len(tables):  # As often as one may have to wait for another.
            if not _among(table, bound) and self._binds(table, bound, conditions):
                bound.append(table)
        for table in tables:
            if not _among(table, bound):
                raise TenantNotBound(f"no tenant is bound for {table}")
        self._bound += bound

    def _binds(
        self, table: FromClause, bound: Sequence[FromClause], conditions: Sequence[_Condition]
    ) -> bool:
        """Tell whether a condition binds the table; note the parameters that it does so with."""
        found = False
        for left, right, narrows in conditions:
            if not _among(table, narrows):
                continue
            for column, other in ((left, right), (right, left)):
                if not _is_tenant_of(column, table):
                    continue
                name = self._compiled.bind_names.get(other) if _is_parameter(other) else None
                if name is not None:
                    self.names.add(name)
                    found = True
                found = found or any(_is_tenant_of(other, one) for one in bound)
        return found

    def _require(self, name: str | None) -> None:
        if name is None or name not in self._compiled.binds:
            raise TenantNotBound("an INSERT that says no tenant")
        self.names.add(name)

    def _require_guarded(self, table: Any) -> None:
        if not self._is_guarded(table):
            raise TenantNotBound(f"a change to {table}, which is no table of tenants'")

    def _is_guarded(self, source: Any) -> bool:
        while isinstance(source, AliasedReturnsRows):
            source = source.element
        return isinstance(source, TableClause) and source.name.lower() in self._guarded


def _conditions(clause: Any, narrows: Sequence[FromClause]) -> Iterator[_Condition]:
    """Yield the equations among the conditions that must all hold."""
    if isinstance(clause, Grouping):
        yield from _conditions(clause.element, narrows)
    elif isinstance(clause, BooleanClauseList) and clause.operator is operators.and_:
        for part in clause.clauses:
            yield from _conditions(part, narrows)
    elif isinstance(clause, BinaryExpression) and clause.operator is operators.eq:
        yield _Condition(clause.left, clause.right, narrows)


def _is_tenant_of(element: Any, table: FromClause) -> bool:
    """Tell whether this is the table's `tenant_id`."""
    while isinstance(element, Unindexed | Grouping):
        element = element.column if isinstance(element, Unindexed) else element.element
    return (
        isinstance(element, ColumnClause)
        and not element.is_literal
        and element.name == TENANT
        and element.table is table
    )


def _is_parameter(element: Any) -> bool:
    return (
        isinstance(element, BindParameter) and not element.expanding and not element.literal_execute
    )


def _check_known(element: Any, guarded: Collection[str]) -> None:
    """Refuse what cannot be looked into: SQL that is text, elements of unknown classes."""
    if any(getattr(element, name, None) for name in _TEXTS):
        raise TenantNotBound("SQL that is text: a prefix, a suffix or a hint")
    if isinstance(element, TextClause):
        raise TenantNotBound(f"SQL that is text: {element.text}")
    if isinstance(element, ColumnClause) and element.is_literal and element.name != "*":
        raise TenantNotBound(f"SQL that is text: {element.name}")
    if isinstance(getattr(element, "operator", None), operators.custom_op):
        raise TenantNotBound(f"an operator that is text: {element.operator.opstring}")
    if not type(element).__module__.startswith("sqlalchemy.") and type(element) not in ELEMENTS:
        raise TenantNotBound(f"an element that is not in use: {type(element)}")
    if isinstance(element, TableClause):
        name = element.name.lower()
        if name not in guarded and name not in _OF_THE_DATABASE:
            raise TenantNotBound(f"a table that nobody declared: {element.name}")


def _check_conflict(clause: Any) -> None:
    """Refuse to update, on a conflict, a row that may be another tenant's."""
    if TENANT not in map(_name, clause.inferred_target_elements or ()):
        raise TenantNotBound("ON CONFLICT by a key that another tenant may have, too")
    if TENANT in map(_name, clause.update_values_to_set):
        raise TenantNotBound("ON CONFLICT gives rows to a tenant")


def _of_this_scope(element: ClauseElement) -> Iterator[ClauseElement]:
    """Yield what an UPDATE or DELETE consists of, without the SELECTs inside."""
    for child in element.get_children():
        if not isinstance(child, SelectBase):
            yield child
            yield from _of_this_scope(child)


def _is_new(table: Any) -> bool:
    """Tell whether this stands for the row that ON CONFLICT kept out."""
    return isinstance(table, AliasedReturnsRows) and table.name == "excluded"


def _among(table: Any, tables: Collection[FromClause]) -> bool:
    return any(table is one for one in tables)


def _name(column: Any) -> str:
    """Return the name of a column, or of what stands for one."""
    return column if isinstance(column, str) else str(column.name)
