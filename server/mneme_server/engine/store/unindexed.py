"""Columns that SQLite's planner must not look up in an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal


class unindexed(ColumnElement[Any]):  # noqa: N801  # used like a function of SQL
    """A column that SQLite's planner must not look up in an index; the column itself elsewhere.

    In a tenant's own file `tenant_id` has one value, but the planner takes it for selective and
    reads a whole index of it, where a key stands in the same condition.
    """

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type

    def get_children(self, **_: Any) -> Iterator[ColumnElement[Any]]:
        """Return the column: the statement's tables are found by it."""
        return iter((self.column,))


unindexed._traverse_internals = [("column", InternalTraversal.dp_clauseelement)]


@compiles(unindexed)
def _plain(element: unindexed, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.column, **options))


@compiles(unindexed, "sqlite")
def _with_plus(element: unindexed, compiler: Any, **options: Any) -> str:
    return f"+{compiler.process(element.column, **options)}"
