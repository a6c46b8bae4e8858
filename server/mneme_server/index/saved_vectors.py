"""The copy of the vectors in the tenant's folder, and what it lacks."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from mneme_server.corpus.feed import Position
from mneme_server.index import snapshot as snapshots
from mneme_server.index.columns import DocumentTable
from mneme_server.index.dense import NO_ROW, DenseIndex
from mneme_server.index.loading import Loaded


class SavedVectors:
    """The copy that `snapshots` writes.

    Args:
        folder: where it lies.
        model_id: what made the vectors.
        lock: held by whoever changes vectors, and to call `changed`.
        loaded: what was found there.
    """

    def __init__(self, folder: Path, model_id: str, lock: threading.Lock, loaded: Loaded) -> None:
        self._folder = folder
        self._model_id = model_id
        self._lock = lock
        self._unsaved = loaded.unsaved
        self._position = loaded.position

    def lacks(self, position: Position) -> int:
        """Return how much of what there is at `position` it does not hold, in vectors or rows."""
        return max(self._unsaved, position.number - self._position.number)

    def changed(self, vectors: int) -> None:
        """Note that so many vectors came or went."""
        self._unsaved += vectors

    def save(self, table: DocumentTable, dense: DenseIndex, position: Position) -> None:
        """Write what changed since the last time: everything that was applied up to `position`.

        Raises:
            OSError: the disk is full or cannot be written; the copy before stays.
        """
        with self._lock:
            unsaved = self._unsaved
            graph, rows, tail = dense.export()
            doc_ids = np.full(rows.size, -1, np.int64)
            doc_ids[rows != NO_ROW] = table.doc_id[rows[rows != NO_ROW]]
        if unsaved or not snapshots.exists(self._folder):
            state = snapshots.Snapshot(
                self._model_id, dense.dimensions, position, graph, doc_ids, tail
            )
            snapshots.write(self._folder, state)
        elif position != self._position:
            snapshots.move(self._folder, position)
        with self._lock:
            self._unsaved -= unsaved
            self._position = position
