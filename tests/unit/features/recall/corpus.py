"""A tenant for recall: the real index over documents in memory, an embedder that counts words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mneme_server.common.begun import Begun
from mneme_server.engine.corpus.document import CONTEXT_DOCUMENTS, Document, MemoryView
from mneme_server.engine.corpus.ports import Matrix, Question
from mneme_server.engine.corpus.tenant import IndexSearch
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.features.context.model import SESSION
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.learn.model import LESSON
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall
from unit.engine.index.memory_source import MemorySource

DIMENSIONS = 256


class WordCounts:
    """Embeds a text as its words, each a dimension of its own (but for collisions)."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, zlib.crc32(word.encode()) % DIMENSIONS] += 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.maximum(lengths, 1e-9)
        return vectors

    def begin(self, texts: Sequence[str]) -> Begun[Matrix]:
        return Begun(partial(self.embed, texts))


class Corpus:
    """Stands for the tenants, a tenant and its unit of work, as far as recall asks for them."""

    pending = 0

    def __init__(self, folder: Path) -> None:
        self._source = MemorySource(DIMENSIONS)
        self._embedder = WordCounts()
        self.index = TenantIndex(folder, self._source, "words", DIMENSIONS)
        self.memories = self

    def say(self, session: str, *texts: str, category: str = "message", **more: Any) -> list[int]:
        """Add events at the end of a session; return their ids."""
        return [self._add(text, session, category=category, **more) for text in texts]

    def learn(self, text: str, **more: Any) -> int:
        """Add a lesson; return its id."""
        return self._add(text, "", kind=LESSON, **more)

    def recall(self, text: str, **more: Any) -> RecallAnswer:
        return Recall(self, self._embedder).search(
            "tenant", RecallQuery(text, confidence=True, **more)
        )  # type: ignore[arg-type]

    def ids(self, text: str, **more: Any) -> list[int]:
        return [result.document.doc_id for result in self.recall(text, **more).results]

    @contextmanager
    def open(self, tenant_id: str) -> Iterator[Corpus]:
        yield self

    @contextmanager
    def searching(self, question: Question) -> Iterator[IndexSearch]:
        yield IndexSearch(self)  # type: ignore[arg-type]

    @contextmanager
    def reading_shown(self, *, newest: bool = False) -> Iterator[Corpus]:
        yield self

    lost = 0

    def get_many(self, doc_ids: Sequence[int], *, bare: bool = False) -> Mapping[int, MemoryView]:
        return {d.doc_id: MemoryView(d, {}) for d in self._source.documents_of(doc_ids)}

    def sum_up(self, session: str, text: str) -> int:
        """Add the summary of a session; return its id."""
        return self._add(text, session, kind=SESSION, position=0)

    def _add(self, text: str, session: str, *, embedded: bool = True, **more: Any) -> int:
        doc_id = len(self._source.documents) + 1
        before = [d for d in self._source.documents.values() if session and d.session_id == session]
        values: dict[str, Any] = {
            "kind": EVENT,
            "timestamp_us": 1_700_000_000_000_000 + doc_id,
            "position": len(before) + 1 if session else 0,
            **more,
        }
        document = Document(
            doc_id=doc_id, source_id=f"d{doc_id}", text=text, session_id=session, **values
        )
        if document.spoken:
            spoken = [d.text for d in before if d.spoken]
            document.context = "\n".join(spoken[-CONTEXT_DOCUMENTS:])
        self._source.put([document])
        self.index.add_documents([document])
        if embedded:
            self.index.add_vectors(self._source.embed([doc_id], self._embedder.embed([text])))
        return doc_id
