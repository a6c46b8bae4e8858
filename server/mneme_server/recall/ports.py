"""What recall needs from storage and from the embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.document import Document, Scope
from mneme_server.corpus.ports import Matrix
from mneme_server.corpus.tenant import CorpusUnit


class MemoryReader(Protocol):
    """Memories as recall shows them."""

    def documents_of(self, doc_ids: Sequence[int]) -> Mapping[int, Document]:
        """Return these documents by id, without contexts; those that are gone are left out."""
        ...

    def details_of(self, scope: Scope, source_ids: Sequence[str]) -> Mapping[str, JsonObject]:
        """Return what else is known of these sources, by id."""
        ...


class RecallUnit(CorpusUnit, Protocol):
    """One transaction, as far as recall is concerned."""

    @property
    def memories(self) -> MemoryReader:
        """Memories as recall shows them."""
        ...


class QueryEmbedder(Protocol):
    """Embeds queries while a caller waits."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors (n, d)."""
        ...
