"""Whether a statement binds the tenant of every table that it touches, read from its structure.

A `tenant_id` counts where it narrows what is read or changed and nowhere else: as one of the
conditions that must all hold (`a AND b`, never `a OR b`), equal to a parameter, or to a `tenant_id`
that is bound itself. What the analysis does not know is refused: a part written as text, a table
that nobody declared, a kind of statement or of element that is not in use here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    BooleanClauseList,
    ColumnClause,
    Delete,
    FromClause,
    Insert,
    Join,
    Select,
    SelectBase,
    TableClause,
    TextClause,
    Update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression, ClauseElement, Grouping
from sqlalchemy.sql.selectable import AliasedReturnsRows, FromGrouping

from mneme_server.engine.store.portable import ELEMENTS
from mneme_server.engine.store.unindexed import unindexed

TENANT = "tenant_id"

_OF_THE_DATABASE = frozenset({"sqlite_sequence"})
"""Tables that hold no tenant's data, and that statements may read."""
_TEXTS = ("_prefixes", "_suffixes", "_hints", "_statement_hints")
_ON_CONFLICT_UPDATE = (sqlite.dml.OnConflictDoUpdate, postgresql.dml.OnConflictDoUpdate)


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
    while isinstance(element, unindexed | Grouping):
        element = element.column if isinstance(element, unindexed) else element.element
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
