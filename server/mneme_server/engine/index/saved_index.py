"""The copy of attributes and vectors in the tenant's folder, and what it lacks."""

from __future__ import annotations

import threading

import numpy as np

from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.loading import Loaded
from mneme_server.engine.index.places import NO_ROW
from mneme_server.engine.index.snapshot import SnapshotFolder


class SavedIndex:
    """Keeps a snapshot.

    Args:
        folder: where it lies.
        lock: held by whoever changes the index, and to call `changed`.
        loaded: what was found there.
    """

    def __init__(self, folder: SnapshotFolder, lock: threading.Lock, loaded: Loaded) -> None:
        self._folder = folder
        self._lock = lock
        self._writing = threading.Lock()  # Two at once would sweep each other's files away.
        self._documents, self._vectors = loaded.documents, loaded.vectors
        self._position = loaded.position

    def lacks(self, position: Position) -> int:
        """Return how much of what there is at `position` it does not hold, in documents, vectors or
        rows of the feed."""
        rows = position.number - self._position.number
        return max(self._documents, self._vectors, rows)

    def changed(self, *, documents: int = 0, vectors: int = 0) -> None:
        """Note that so many documents or vectors came, changed or went."""
        self._documents += documents
        self._vectors += vectors

    def save(self, table: DocumentTable, dense: DenseIndex, position: Position) -> None:
        """Write what changed since the last time: everything that was applied up to `position`.

        Raises:
            OSError: the disk is full or cannot be written; the copy before stays.
        """
        with self._writing:
            self._save(table, dense, position)

    def _save(self, table: DocumentTable, dense: DenseIndex, position: Position) -> None:
        gone = not self._folder.exists()
        with self._lock:
            same = not self._documents and not self._vectors
            if not gone and same and self._folder.holds(dense.graphs):
                copied = None
            else:
                if gone:
                    self._folder.forget()
                    table.touch()
                documents, vectors = self._documents, self._vectors
                copied = table.export()
                graphs, rows, tail = dense.export()
                doc_ids = np.full(rows.size, NO_ROW, np.int64)
                doc_ids[rows != NO_ROW] = table.doc_id[rows[rows != NO_ROW]]
        if copied is None:
            if position != self._position:
                self._folder.move(position)
                self._position = position
            return
        try:
            self._folder.write(position, graphs, doc_ids, tail, copied)
        except BaseException:
            with self._lock:
                table.touch(copied.chunks)
            raise
        with self._lock:
            self._documents -= documents
            self._vectors -= vectors
            self._position = position
