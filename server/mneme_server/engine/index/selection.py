"""The selection of the documents that a filter lets through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.attributes import (
    BY_NAME,
    Among,
    Attribute,
    Between,
    Condition,
    NotArchived,
    SaidBy,
    Tagged,
    conditions,
)
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Rows, Selection
from mneme_server.engine.index.columns import DocumentTable

Mask = NDArray[np.bool_]
Int32s = NDArray[np.int32]

_CACHED_SELECTIONS = 4
_NOBODY = -2
_SMALL = 20_000
"""Rows that are all looked at: less than a search takes."""
_FEW = 1 / 8
"""Of all rows, those that one condition leaves, up to which only these are looked at."""
_BEHIND = 16_384
_BEHIND_SHARE = 1 / 8
"""Rows that came or changed since an order was made, until they are sorted in."""


class Selections:
    """What filters let through of a table. Those that were asked for last are kept up with it.

    What a filter that leaves few costs depends on them, not on all: what it names is looked up.
    """

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._orders = Orderings(table)
        self._known: dict[DocumentFilter, tuple[int, Selection]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of what is looked up."""
        return self._orders.nbytes

    def of(self, filter_: DocumentFilter) -> Selection:
        """Return the rows that `filter_` lets through; the mask must not be written to."""
        version = self._table.version
        known = self._known.get(filter_)
        if known is not None and known[0] == version:
            return known[1]
        conditions = self._conditions(filter_)
        changed = None if known is None else self._table.changed_since(known[0])
        if known is not None and changed is not None:
            selection = self._updated(known[1], conditions, changed)
        else:
            selection = self._found(conditions)
        if len(self._known) >= _CACHED_SELECTIONS and known is None:
            self._known = {}
        self._known[filter_] = (version, selection)
        return selection

    def alike(self, row: int) -> Rows:
        """Return the rows, in order, that have the row's shape or, where it has none, its text."""
        column = "shape" if self._table.shape[row] else "fingerprint"
        values, size = getattr(self._table, column), self._table.size
        same = values[row]
        if size <= _SMALL:
            return np.flatnonzero(values[:size] == same)
        order = self._orders.of(column)
        changed = (part[values[part] == same] for part in order.unordered())
        rows = np.unique(np.concatenate([order.between(int(same), int(same) + 1), *changed]))
        found: Rows = rows[values[rows] == same].astype(np.int64)
        return found

    def _updated(
        self, selection: Selection, conditions: Sequence[_RowCondition], changed: Rows
    ) -> Selection:
        """Return a selection with these rows, some behind its end, looked at again."""
        size = self._table.size
        changed = np.unique(changed[changed < size])
        mask = np.zeros(size, bool)
        mask[: selection.mask.size] = selection.mask
        count = selection.count - int(np.count_nonzero(mask[changed]))
        fits = self._fitting(conditions, changed)
        mask[changed] = False
        mask[fits] = True
        listed = selection.listed
        if listed is not None:
            listed = np.union1d(listed[~np.isin(listed, changed)], fits)
        return self._selection(mask, count + fits.size, listed)

    def _found(self, conditions: Sequence[_RowCondition]) -> Selection:
        size = self._table.size
        if size > _SMALL and conditions:
            found = [
                condition.candidates(self._orders)
                for condition in conditions
                if not _is_of_nearly_all(condition)
            ]
            parts = min(found, key=lambda parts: sum(part.size for part in parts), default=None)
            if parts is not None and sum(part.size for part in parts) <= size * _FEW:
                rows = np.unique(np.concatenate(parts)).astype(np.int64)
                rows = self._fitting(conditions, rows[rows < size])
                mask = np.zeros(size, bool)
                mask[rows] = True
                return self._selection(mask, rows.size, rows)
        mask = self._table.live[:size].copy()
        for condition in conditions:
            mask &= condition.holds(self._table, slice(0, size))
        return self._selection(mask, int(np.count_nonzero(mask)), None)

    def _fitting(self, conditions: Sequence[_RowCondition], rows: Rows) -> Rows:
        rows = rows[self._table.live[rows]]
        for condition in conditions:
            rows = rows[condition.holds(self._table, rows)]
        return rows

    def _selection(self, mask: Mask, count: int, listed: Rows | None) -> Selection:
        # Equal counts may be of two moments, between which what is selected was removed.
        everything = count == self._table.live_count and not bool(
            (self._table.live[: mask.size] > mask).any()
        )
        return Selection(mask, count, everything, listed)

    def _conditions(self, wanted: DocumentFilter) -> list[_RowCondition]:
        return [self._looked_at(condition) for condition in conditions(wanted)]

    def _looked_at(self, condition: Condition) -> _RowCondition:
        """Return a condition as one on the table's columns."""
        table = self._table
        match condition:
            case Among(attribute, values):
                return _ColumnAmong(attribute.held, self._numbers(attribute, values))
            case Between(attribute, least, end):
                return _ColumnBetween(attribute.held, least, end)
            case Tagged(tags, every):
                sets = table.tag_sets_holding if every else table.tag_sets_with
                return _ColumnAmong("tags", sets(tags))
            case SaidBy(author):
                return _Either(
                    _ColumnAmong("role", [table.role_number(author.lower())]),
                    _ColumnAmong("author", table.authors_spelled(author)),
                )
            case NotArchived([]):
                return _NOT_ARCHIVED
            case NotArchived(besides):
                kinds = [kind.name for kind in besides]
                return _Either(
                    _NOT_ARCHIVED, _ColumnAmong("kind", self._numbers(BY_NAME["kind"], kinds))
                )

    def _numbers(self, attribute: Attribute, values: Sequence[Any]) -> Sequence[int]:
        """Return what stands for values in a column; one that no row has for a name without."""
        if not attribute.coded:
            return values
        codes: Mapping[Any, int] = self._table.codes[attribute.held]
        return [codes.get(value, _NOBODY) for value in values]


class _RowCondition(Protocol):
    """What a filter asks for, one of it."""

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        """Return for which of these rows it is so."""
        ...

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        """Return rows in parts, among them all for which it is so."""
        ...


@dataclass(frozen=True, slots=True)
class _ColumnAmong:
    """The column holds one of these numbers."""

    column: str
    numbers: Sequence[int]

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        column: NDArray[Any] = getattr(table, self.column)[rows]
        if len(self.numbers) == 1:
            one: Mask = column == self.numbers[0]
            return one
        return np.isin(column, self.numbers)

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        order = orders.of(self.column)
        parts = [order.between(number, number + 1) for number in self.numbers]
        return [*parts, *order.unordered()]


@dataclass(frozen=True, slots=True)
class _ColumnBetween:
    """The column holds at least `least` and less than `end`, where they are given."""

    column: str
    least: float | None
    end: int | None = None

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        column: NDArray[Any] = getattr(table, self.column)[rows]
        fits = np.ones(column.shape, bool)
        if self.least is not None:
            fits &= column >= self.least
        if self.end is not None:
            fits &= column < self.end
        return fits

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        order = orders.of(self.column)
        return [order.between(self.least, self.end), *order.unordered()]


@dataclass(frozen=True, slots=True)
class _Either:
    """One of two is so."""

    one: _ColumnAmong
    other: _ColumnAmong

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        return self.one.holds(table, rows) | self.other.holds(table, rows)

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        return [*self.one.candidates(orders), *self.other.candidates(orders)]


_NOT_ARCHIVED = _ColumnAmong("archived", [0])


def _is_of_nearly_all(condition: _RowCondition) -> bool:
    """Tell whether nearly all rows fulfil it, so that nothing is gained by looking them up."""
    first = condition.one if isinstance(condition, _Either) else condition
    return first == _NOT_ARCHIVED


class Orderings:
    """The orders of a table's columns, to find the rows with a value without a look at all. Each is
    made when it is asked for first. Readers share them; what two make at once is the same."""

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._known: dict[str, Ordering] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(order.nbytes for order in list(self._known.values()))

    def of(self, column: str) -> Ordering:
        """Return the order of a column as the table is now, or later."""
        version = self._table.version
        order = self._known.get(column)
        if order is not None and order.version != version:
            changed = self._table.changed_since(order.version)
            order = None if changed is None else order.with_changes(changed, version)
        if order is None or order.behind > max(_BEHIND, order.size * _BEHIND_SHARE):
            order = self._made(column, version)
        self._known[column] = order
        return order

    def _made(self, column: str, version: int) -> Ordering:
        size = self._table.size
        values = getattr(self._table, column)[:size].copy()
        rows = np.argsort(values, kind="stable").astype(np.int32)
        return Ordering(values[rows], rows, size, version)


class Ordering:
    """The first `size` rows of a column in the order of their values, as they were when `version`
    was the table's; what changed since is named by `unordered`."""

    def __init__(self, values: NDArray[Any], rows: Int32s, size: int, version: int) -> None:
        self._values = values
        self._rows = rows
        self.size = size
        self.version = version
        self._changed: list[Int32s] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._values.nbytes + self._rows.nbytes

    def between(self, least: float | None, end: float | None) -> Int32s:
        """Return the rows whose value was at least `least` and less than `end`, where given."""
        first = 0 if least is None else self._place(least)
        last = self._values.size if end is None else self._place(end)
        return self._rows[first : max(first, last)]

    def _place(self, value: float) -> int:
        """Return how many values are less."""
        dtype = self._values.dtype
        if dtype.kind == "f":
            return int(np.searchsorted(self._values, dtype.type(value)))
        limits = np.iinfo(dtype)
        if value > limits.max:
            return self._values.size
        # As the column's own type: of another one the whole column would be copied.
        least = dtype.type(max(value, limits.min))
        return int(np.searchsorted(self._values, least))

    def unordered(self) -> list[Int32s]:
        """Return the rows that came or changed since, in parts."""
        return self._changed

    def with_changes(self, changed: NDArray[np.int64], version: int) -> Ordering:
        """Return it with rows that came or changed since."""
        moved = Ordering(self._values, self._rows, self.size, version)
        moved._changed = (
            [*self._changed, changed.astype(np.int32)] if changed.size else self._changed
        )
        return moved

    @property
    def behind(self) -> int:
        """How many rows came or changed since."""
        return sum(part.size for part in self._changed)
