"""The store of a tenant's memory, as a port.

It says nothing of files or of SQL. What an implementation must do beyond its types stands in the
contract's tests, which run against each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import TypeVar  # Of Python 3.13: one that need not be said.

from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.cold_search import Scan
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import Feed
from mneme_server.engine.corpus.ports import CorpusSource, Matrix, MemoryReader


class DocumentWriter(Protocol):
    """The documents of one transaction."""

    @property
    def changes(self) -> CorpusChange:
        """What this transaction has changed so far."""
        ...

    def add(
        self,
        documents: Sequence[Document],
        vectors: Matrix | None = None,
    ) -> list[Document]:
        """Add documents and return them with their `doc_id` and `context` filled in.

        With `vectors` (n, d) they are embedded already, but for long ones, whose passages are not;
        these, and all without, are queued for embedding.
        """
        ...

    def remove(self, kind: MemoryKind, source_ids: Sequence[str], *, named: bool = True) -> None:
        """Remove the documents of these sources. Unknown ones are ignored. Unless they are `named`
        the feed does not say what the sources are called."""
        ...

    def set_archived(self, kind: MemoryKind, source_id: str, *, archived: bool) -> None:
        """Mark a source's document as archived or not."""
        ...

    def set_value(self, kind: MemoryKind, source_id: str, value: float) -> None:
        """Give a source's document another value to be filtered by."""
        ...

    def set_session(
        self,
        kind: MemoryKind,
        session_id: str,
        *,
        user_id: str,
        project: str,
        tags: tuple[str, ...],
    ) -> None:
        """Give a session's documents of that kind the attributes of their session.

        Those that have a user keep it: their sources name it.
        """
        ...

    def set_user(self, session_id: str, user_id: str) -> None:
        """Give the user whom a session serves to its documents of kinds that are `of_session`."""
        ...


@dataclass(frozen=True, slots=True)
class QueuedText:
    """A document that waits for its embedding."""

    doc_id: int
    attempts: int
    text: str


class EmbeddingQueue(Protocol):
    """The durable queue of documents to embed."""

    def due(self, now_us: int, limit: int) -> Sequence[QueuedText]:
        """Return up to `limit` documents whose turn has come, the oldest first."""
        ...

    def next_due_us(self) -> int | None:
        """Return when the next document's turn comes; None when the queue is empty."""
        ...

    def depth(self) -> int:
        """Return how many documents wait."""
        ...

    def waiting_of(self, doc_ids: Sequence[int]) -> int:
        """Return how many of these documents wait."""
        ...

    def known_vectors(self, texts: Sequence[str]) -> Mapping[str, Matrix]:
        """Return the vectors (k, d) of texts that this tenant has embedded before: that of the
        whole text and, of a long one, those of its passages."""
        ...

    def finish(self, embedded: Sequence[QueuedText], vectors: Sequence[Matrix]) -> None:
        """Store the vectors (k, d) of each and take their documents off the queue.

        Documents that were removed meanwhile are left out.
        """
        ...

    def defer(self, doc_ids: Sequence[int], *, until_us: int, error: str) -> None:
        """Put documents off that could not be embedded, and keep the reason."""
        ...

    def give_up(self, doc_ids: Sequence[int]) -> None:
        """Take documents off the queue that never can be embedded: they have no vector."""
        ...


R = TypeVar("R")


class CorpusUnit(Protocol):
    """One transaction: the corpus, and the repositories of the features that use it."""

    def get(self, repository: type[R]) -> R:
        """Return the transaction's repository of a class, made when it is first asked for.

        It is one of a feature's store, which is made of a connection and the tenant's id, or a port
        that a feature above implements: a protocol or a base class.
        """
        ...

    @property
    def documents(self) -> DocumentWriter:
        """What can be recalled."""
        ...

    @property
    def queue(self) -> EmbeddingQueue:
        """What waits for its embedding."""
        ...

    @property
    def feed(self) -> Feed:
        """What each commit changed."""
        ...

    @property
    def memories(self) -> MemoryReader:
        """What can be recalled, as it is shown."""
        ...

    def follows(self, kind: MemoryKind) -> bool:
        """Return whether what is shown of a kind beside its documents changes with these alone."""
        ...


U_co = TypeVar("U_co", bound=CorpusUnit, covariant=True, default=CorpusUnit)


class TenantStore(Protocol[U_co]):
    """What one tenant keeps: the truth, from which indexes are built."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that it holds while it is open. It takes some microseconds."""
        ...

    def read(self) -> AbstractContextManager[U_co]:
        """Open a read transaction: one consistent snapshot."""
        ...

    def write(self) -> AbstractContextManager[U_co]:
        """Open a write transaction; durable when the block ends, undone when it raises.

        What it changes of the documents has a row in the feed, by the time the block has ended.
        """
        ...

    def compact(self, worth_rewriting: float) -> bool:
        """Give back the room of deleted rows; return whether there was any. Reads and writes go on.

        A store that must be rewritten for that, while writes wait, is left as it is where less than
        this share of it, 0 to 1, would be won.

        Raises:
            Unavailable: others used it for too long; it can be tried again.
        """
        ...

    def scrub(self) -> None:
        """Leave nothing where it is kept of what was deleted. Takes long; reads go on meanwhile.

        Raises:
            Unavailable: others used it for too long; it can be tried again.
        """
        ...

    @property
    def source(self) -> CorpusSource:
        """What an index is built from; each call reads a snapshot of its own."""
        ...

    @property
    def scan(self) -> Scan | None:
        """What is read of a tenant that has no index here yet; None where one is always built
        first."""
        ...

    def close(self) -> None:
        """Let go of it. Nobody may use it any more."""
        ...


class TenantStores(Protocol[U_co]):
    """Where tenants' stores come from: a kind of store is a class that implements this, and one
    that implements `TenantStore`."""

    def open(self, tenant_id: str) -> TenantStore[U_co]:
        """Open the tenant's store, which is empty at first. What it holds outlives its closing.

        Raises:
            FailedPrecondition: a newer version made it.
            DataLoss: it is damaged.
            Unavailable: it cannot be reached now.
        """
        ...

    def holds(self, tenant_id: str) -> bool:
        """Tell whether anything was ever kept for the tenant."""
        ...

    def shared_bytes(self, tenant_id: str) -> int:
        """Return about how many bytes the tenant's rows take in a database that tenants share; 0
        where it has files of its own."""
        ...

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        """Remove all that is kept for the tenant, which nobody may have open. There may be
        nothing.

        `require` raises where another has the tenant's id by now. What is removed then was there
        when it was called.

        Raises:
            Unavailable: others were put in the place of its rows meanwhile.
            What `require` raises; nothing was removed.
        """
        ...
