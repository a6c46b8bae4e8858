"""Rows in the order of what a column holds, to find those with a value without a look at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.index.columns import DocumentTable

Int32s = NDArray[np.int32]

_BEHIND = 16_384
_BEHIND_SHARE = 1 / 8
"""Rows that came or changed since an order was made, until they are sorted in."""


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


class Orderings:
    """The orders of a table's columns, each made when it is asked for first. Readers share them;
    what two make at once is the same."""

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
