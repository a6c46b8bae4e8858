"""SQL that every database understands, and what each of them says in words of its own.

Statements are written once, with these; the dialect that runs one decides its words. What differs
beyond words, e.g. what begins a transaction, is the affair of the database that opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    LargeBinary,
    Select,
    Text,
    column,
    select,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.sql.visitors import InternalTraversal

# SQLite took ON CONFLICT from PostgreSQL, and its compiler writes PostgreSQL's construct; the other
# way round SQLAlchemy's does not work.
__all__ = [
    "ELEMENTS", "Insert", "array_of", "ending", "greatest", "insert", "joined", "json_array",
    "json_items", "least", "listed", "unindexed",
]  # fmt: skip


class _Items(FunctionElement[Any]):
    inherit_cache = True
    name = "json_each"


class _Numbers(FunctionElement[Any]):
    inherit_cache = True
    name = "json_each"


class least(FunctionElement[Any]):  # noqa: N801  # used like a function of SQL
    """The least of some values, none of which is null."""

    inherit_cache = True

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self.type = self.clauses.clauses[0].type


class greatest(least):  # noqa: N801
    """The greatest of some values, none of which is null."""

    inherit_cache = True


class ending(FunctionElement[str]):  # noqa: N801
    """The last characters of a text: `ending(text, 10)`."""

    inherit_cache = True
    type = Text()


class json_array(FunctionElement[str]):  # noqa: N801
    """The values of several rows as one JSON array, without spaces; `[]` of no rows."""

    inherit_cache = True
    type = Text()


class joined(FunctionElement[bytes]):  # noqa: N801
    """The values of several rows in UTF-8, a NUL between each two; null of no rows."""

    inherit_cache = True
    type = LargeBinary()


class Unindexed(ColumnElement[Any]):
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


Unindexed._traverse_internals = [("column", InternalTraversal.dp_clauseelement)]

ELEMENTS = frozenset({Unindexed, _Items, _Numbers, least, greatest, ending, json_array, joined})
"""What statements may consist of beside what SQLAlchemy has."""


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column that SQLite's planner must not look up in an index; see `Unindexed`."""
    return Unindexed(column)


def json_items(array: Any) -> TableValuedAlias:
    """Return the items of a JSON array of texts as the rows of a table with one column, `value`."""
    return _Items(array).table_valued(column("value", Text()))


def listed(array: BindParameter[Any], *, numbers: bool = False) -> Select[Any]:
    """Select the values of a bound JSON array, for `IN`.

    Where a statement runs often: an IN list is written out anew, value by value, each time.

    Args:
        array: the parameter.
        numbers: they are whole numbers, not texts.
    """
    if numbers:
        return select(_Numbers(array).table_valued(column("value", BigInteger())).c.value)
    return select(json_items(array).c.value)


def array_of(texts: Iterable[str]) -> str:
    """Return what `listed` takes of texts: `json.dumps` sets up an encoder each time, which takes
    longer than to look up one row."""
    return f"[{','.join(map(encode_basestring_ascii, texts))}]"


def _arguments(element: FunctionElement[Any], compiler: Any, options: Any) -> list[str]:
    return [str(compiler.process(argument, **options)) for argument in element.clauses]


@compiles(_Items)
def _json_each(element: _Items, compiler: Any, **options: Any) -> str:
    return f"json_each({', '.join(_arguments(element, compiler, options))})"


@compiles(_Items, "postgresql")
def _json_array_elements(element: _Items, compiler: Any, **options: Any) -> str:
    (array,) = _arguments(element, compiler, options)
    return f"json_array_elements_text(CAST({array} AS JSON))"


@compiles(_Numbers)
def _json_each_number(element: _Numbers, compiler: Any, **options: Any) -> str:
    return f"json_each({', '.join(_arguments(element, compiler, options))})"


@compiles(_Numbers, "postgresql")
def _unnest(element: _Numbers, compiler: Any, **options: Any) -> str:
    """Texts that are compared as numbers would be: a cast may fail on a row, so that behind
    row-level security no index is used for it, and all tenants' rows are read."""
    (array,) = _arguments(element, compiler, options)
    return f"(SELECT unnest(CAST(translate({array}, '[]', '{{}}') AS BIGINT[])) AS value)"


@compiles(least)
def _min(element: least, compiler: Any, **options: Any) -> str:
    return f"min({', '.join(_arguments(element, compiler, options))})"


@compiles(least, "postgresql")
def _least(element: least, compiler: Any, **options: Any) -> str:
    return f"least({', '.join(_arguments(element, compiler, options))})"


@compiles(greatest)
def _max(element: greatest, compiler: Any, **options: Any) -> str:
    return f"max({', '.join(_arguments(element, compiler, options))})"


@compiles(greatest, "postgresql")
def _greatest(element: greatest, compiler: Any, **options: Any) -> str:
    return f"greatest({', '.join(_arguments(element, compiler, options))})"


@compiles(ending)
def _substr(element: ending, compiler: Any, **options: Any) -> str:
    text, characters = _arguments(element, compiler, options)
    return f"substr({text}, -{characters})"


@compiles(ending, "postgresql")
def _right(element: ending, compiler: Any, **options: Any) -> str:
    text, characters = _arguments(element, compiler, options)
    return f"right({text}, {characters})"


@compiles(json_array)
def _json_group_array(element: json_array, compiler: Any, **options: Any) -> str:
    return f"json_group_array({', '.join(_arguments(element, compiler, options))})"


@compiles(json_array, "postgresql")
def _string_agg(element: json_array, compiler: Any, **options: Any) -> str:
    (value,) = _arguments(element, compiler, options)
    return f"'[' || coalesce(string_agg(CAST(to_json({value}) AS TEXT), ','), '') || ']'"


@compiles(joined)
def _group_concat(element: joined, compiler: Any, **options: Any) -> str:
    (value,) = _arguments(element, compiler, options)
    return f"CAST(group_concat({value}, char(0)) AS BLOB)"


@compiles(joined, "postgresql")
def _string_agg_of_bytes(element: joined, compiler: Any, **options: Any) -> str:
    (value,) = _arguments(element, compiler, options)
    return f"string_agg(convert_to(CAST({value} AS TEXT), 'UTF8'), CAST('\\x00' AS BYTEA))"


@compiles(Unindexed)
def _plain(element: Unindexed, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.column, **options))


@compiles(Unindexed, "sqlite")
def _with_plus(element: Unindexed, compiler: Any, **options: Any) -> str:
    return f"+{compiler.process(element.column, **options)}"
