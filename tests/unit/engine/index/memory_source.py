"""A corpus in memory, where a database would be."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import START, FeedRow, KindChange, LostPlace, Position, ranges
from mneme_server.engine.corpus.ports import Matrix, VectorBatch
from mneme_server.features.events.event_types import EVENT
from numpy.typing import NDArray

DIMENSIONS = 8


class MemorySource:
    """Implements `CorpusSource`."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.documents: dict[int, Document] = {}
        self.vectors: dict[int, tuple[int, NDArray[np.float32]]] = {}
        self.rows: list[FeedRow] = []
        self._dimensions = dimensions
        self._seq = 0

    layout = "as in tests"

    def head(self) -> Position:
        return self.rows[-1].position if self.rows else START

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        known = [START, *(row.position for row in self.rows)]
        first = self.rows[0].position.number if self.rows else 1
        if place not in known or (place == START and first > 1):
            raise LostPlace(f"no row {place.number}")
        return [row for row in self.rows if row.position.number > place.number][:limit]

    def note(
        self,
        saved: Iterable[int] = (),
        removed: Iterable[int] = (),
        embedded: Iterable[int] = (),
        *,
        everything: bool = False,
    ) -> None:
        """Write a row of the feed."""
        position = Position(self.head().number + 1, secrets.randbits(63))
        kinds = (KindChange("event", ranges(saved), ranges(removed)),)
        self.rows.append(FeedRow(position, kinds, ranges(embedded), everything))

    def trim(self, kept: int) -> None:
        self.rows = self.rows[-kept:]

    def put(self, documents: Sequence[Document]) -> None:
        self.documents.update((document.doc_id, document) for document in documents)
        self.note(saved=[document.doc_id for document in documents])

    def embed(self, doc_ids: Sequence[int], vectors: Matrix) -> VectorBatch:
        for doc_id, vector in zip(doc_ids, vectors, strict=True):
            self._seq += 1
            self.vectors[doc_id] = (self._seq, vector)
        self.note(embedded=doc_ids)
        return self.vectors_of(doc_ids)

    def drop(self, doc_ids: Sequence[int]) -> None:
        for doc_id in doc_ids:
            self.documents.pop(doc_id, None)
            self.vectors.pop(doc_id, None)
        self.note(removed=doc_ids)

    def documents_after(self, doc_id: int, limit: int) -> Sequence[Document]:
        return [self.documents[i] for i in sorted(self.documents) if i > doc_id][:limit]

    def documents_of(self, doc_ids: Sequence[int]) -> Sequence[Document]:
        return [self.documents[i] for i in doc_ids if i in self.documents]

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        later = sorted((n, doc_id) for doc_id, (n, _) in self.vectors.items() if n > seq)
        return self.vectors_of([doc_id for _, doc_id in later[:limit]])

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        found = [(self.vectors[i][0], i, self.vectors[i][1]) for i in doc_ids if i in self.vectors]
        return VectorBatch(
            np.array([seq for seq, _, _ in found], np.int64),
            np.array([doc_id for _, doc_id, _ in found], np.int64),
            np.array([v for _, _, v in found], np.float32).reshape(len(found), self._dimensions),
        )


class RecordingLog:
    """Keeps what an index reports."""

    def __init__(self) -> None:
        self.infos: list[str] = []
        self.warnings: list[str] = []

    def info(self, event: str, /, **fields: object) -> None:
        self.infos.append(event)

    def warning(self, event: str, /, **fields: object) -> None:
        self.warnings.append(f"{event}: {fields}")


def event(doc_id: int, text: str = "", **attributes: object) -> Document:
    values: dict[str, object] = {
        "doc_id": doc_id,
        "kind": EVENT,
        "source_id": f"e{doc_id}",
        "text": text or f"event number {doc_id}",
        "timestamp_us": doc_id * 1_000,
        **attributes,
    }
    return Document(**values)  # type: ignore[arg-type]


def units(count: int, dimensions: int = DIMENSIONS, seed: int = 0) -> Matrix:
    random = np.random.default_rng(seed)
    vectors: Matrix = random.normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def eventually(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait until background work has come to `condition`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)
