"""The time of the newest document, known without looking at all of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.ports import Rows


class Table(Protocol):
    """The documents, a row each."""

    size: int
    version: int
    timestamp_us: NDArray[np.int64]
    live: NDArray[np.bool_]

    def changed_since(self, version: int) -> Rows | None:
        """Return the rows that changed since a version; None where that is not known."""
        ...


class Newest:
    """Keeps the newest time of a table. Readers need no lock."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known = (-1, 0, 0)  # Of which version, of how many rows, and the time.

    def time_us(self) -> int:
        """Return it, in microseconds since 1970; 0 without documents."""
        table = self._table
        version, rows, newest = self._known
        if version == table.version:
            return newest
        version_now, size = table.version, table.size
        changed = table.changed_since(version)
        if changed is not None:
            since = self._newest_of(changed)
            # Of rows that were there before, one that was the newest may have gone.
            if since < newest and bool((changed < rows).any()):
                changed = None
            newest = max(since, newest)
        if changed is None:
            newest = self._newest_of(slice(size))
        self._known = (version_now, size, newest)
        return newest

    def _newest_of(self, rows: Rows | slice) -> int:
        times = self._table.timestamp_us[rows][self._table.live[rows]]
        return int(times.max()) if times.size else 0
