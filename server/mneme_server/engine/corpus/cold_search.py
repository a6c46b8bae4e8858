"""The ports to search a tenant that has no index here yet: what its store tells meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import (
    CorpusSearch,
    MemoryReader,
    Question,
    Rows,
    VectorBatch,
)


class TextPage(NamedTuple):
    """Documents and what they say: `doc_ids` (n,), the `sizes` of their texts in bytes, and these
    in UTF-8, in the same order, with a space between each two."""

    doc_ids: Rows
    sizes: Rows
    joined: bytes


class Scan(Protocol):
    """Reads a tenant's rows as they are when it is asked, without an index. Thread-safe."""

    def more_than(self, documents: int) -> bool:
        """Tell whether there are more documents than this."""
        ...

    def has(self, kinds: Collection[MemoryKind]) -> bool:
        """Tell whether there are documents of these kinds; of any, where none are named."""
        ...

    def texts(self, filter_: DocumentFilter, limit: int) -> Generator[TextPage, None, None]:
        """Yield the texts of the documents that `filter_` lets through, up to the `limit` newest,
        page by page.

        More may come: `author` is not looked at. Close it: it holds a connection.
        """
        ...

    def vectors(self, dimensions: int) -> Generator[VectorBatch, None, None]:
        """Yield all vectors that are `dimensions` long, batch by batch, in any order. `seqs` are
        empty. Close it: it holds a connection."""
        ...

    def with_neighbours(self, doc_ids: Sequence[int], reach: int = 1) -> Sequence[Document]:
        """Return these documents, and those up to `reach` places from them in their sessions,
        without contexts, in order."""
        ...


class ColdIndex(Protocol):
    """An index that is not built yet."""

    @property
    def done(self) -> threading.Event:
        """Set once it is built, or will not be."""
        ...

    def search_store(
        self,
        question: Question,
        pending: int,
        reading: Callable[[], AbstractContextManager[MemoryReader]],
    ) -> AbstractContextManager[CorpusSearch | None]:
        """Look a question up in the store itself, and lend what was found; one after the other.
        None where the index was built meanwhile.

        Args:
            question: what is asked.
            pending: how many documents wait for their embedding.
            reading: lends what reads memories as the store has them now.

        Raises:
            Unavailable: the store cannot be reached.
            Abandoned: nobody waits for the call any more.
        """
        ...

    def interrupt(self) -> None:
        """Build it no more: the tenant is being closed."""
        ...
