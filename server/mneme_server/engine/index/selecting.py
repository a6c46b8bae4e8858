"""Which documents a filter lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Rows, Selection
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.ordering import Orderings

_CACHED_SELECTIONS = 4
_NOBODY = -2
_EMPTY = -1
_SMALL = 20_000
"""Rows that are all looked at: less than a search takes."""
_FEW = 1 / 8
"""Of all rows, those that one condition leaves, up to which only these are looked at."""

Mask = NDArray[np.bool_]


class _Condition(Protocol):
    """What a filter asks for, one of it."""

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        """Return for which of these rows it is so."""
        ...

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        """Return rows in parts, among them all for which it is so."""
        ...


@dataclass(frozen=True, slots=True)
class _Among:
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
class _Between:
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

    one: _Among
    other: _Among

    def holds(self, table: DocumentTable, rows: Rows | slice) -> Mask:
        return self.one.holds(table, rows) | self.other.holds(table, rows)

    def candidates(self, orders: Orderings) -> list[NDArray[np.int32]]:
        return [*self.one.candidates(orders), *self.other.candidates(orders)]


_NOT_ARCHIVED = _Among("archived", [0])


def _is_of_nearly_all(condition: _Condition) -> bool:
    """Tell whether nearly all rows fulfil it, so that nothing is gained by looking them up."""
    first = condition.one if isinstance(condition, _Either) else condition
    return first == _NOT_ARCHIVED


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
        self, selection: Selection, conditions: Sequence[_Condition], changed: Rows
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

    def _found(self, conditions: Sequence[_Condition]) -> Selection:
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

    def _fitting(self, conditions: Sequence[_Condition], rows: Rows) -> Rows:
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

    def _conditions(self, wanted: DocumentFilter) -> list[_Condition]:
        codes = self._table.codes
        found: list[_Condition] = []

        def among(column: str, names: Sequence[str], *, shared: bool = False) -> None:
            known = codes[column]
            numbers = [known.get(name, _NOBODY) for name in names]  # type: ignore[call-overload]
            found.append(_Among(column, [*numbers, _EMPTY] if shared else numbers))

        if wanted.kinds:
            among("kind", [kind.name for kind in wanted.kinds])
        for column, value, shared in (
            ("session", wanted.session_id, False),
            ("agent", wanted.agent_id, wanted.shared),
            ("user", wanted.user_id, False),
            ("project", wanted.project, wanted.shared),
            ("name", wanted.name, False),
        ):
            if value:
                among(column, [value], shared=shared)
        for column, values in (
            ("category", wanted.categories or None),
            ("type", wanted.types or None),
            ("session", wanted.session_ids),
            ("user", [""] if wanted.of_no_user else None),
        ):
            if values is not None:
                among(column, sorted(values))
        if wanted.author:
            found.append(
                _Either(
                    _Among("role", [self._table.role_number(wanted.author.lower())]),
                    _Among("author", self._table.authors_spelled(wanted.author)),
                )
            )
        if wanted.importance:
            found.append(_Among("importance", [wanted.importance]))
        if wanted.min_severity:
            found.append(_Between("severity", wanted.min_severity))
        if wanted.min_value is not None:
            found.append(_Between("value", wanted.min_value))
        if wanted.start_us is not None or wanted.end_us is not None:
            found.append(_Between("timestamp_us", wanted.start_us, wanted.end_us))
        if not wanted.include_archived:
            kinds = codes["kind"]
            passing = [kinds.get(kind.name, _NOBODY) for kind in wanted.archived_kinds]  # type: ignore[call-overload]
            kept = _Among("kind", passing)
            found.append(_Either(_NOT_ARCHIVED, kept) if passing else _NOT_ARCHIVED)
        found += self._tagged(wanted)
        return found

    def _tagged(self, wanted: DocumentFilter) -> list[_Condition]:
        asked = (
            (wanted.tags, self._table.tag_sets_holding),
            (wanted.any_tags, self._table.tag_sets_with),
        )
        return [_Among("tags", sets(tags)) for tags, sets in asked if tags]
