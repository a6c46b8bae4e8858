"""What recall needs from storage and from the embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from mneme_server.corpus.document import Memory
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.corpus.ports import Matrix
from mneme_server.corpus.tenant_store import CorpusUnit


class MemoryReader(Protocol):
    """Memories as recall shows them."""

    @property
    def lost(self) -> int:
        """How many memories were left out so far because they are damaged."""
        ...

    def get_many(self, doc_ids: Sequence[int], *, bare: bool = False) -> Mapping[int, Memory]:
        """Return these memories by id of their documents, without contexts; `bare` ones without
        details.

        Those that are gone are left out.
        """
        ...

    def of_sources(self, kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, Memory]:
        """Return memories of a kind by the ids of their sources, likewise."""
        ...


class RecallUnit(CorpusUnit, Protocol):
    """One transaction, as far as recall is concerned."""

    @property
    def memories(self) -> MemoryReader:
        """Memories as recall shows them."""
        ...


class SoonEmbedder(Protocol):
    """Embeds queries while a caller waits, if that can be done soon."""

    def begin(self, texts: Sequence[str]) -> Callable[[], Matrix | None]:
        """Start embedding. The function returned waits for the unit vectors and returns them
        (n, d), or None when they are not to be had soon; it is to be called once, by the thread
        that began.
        """
        ...


class QueryEmbedder(Protocol):
    """Embeds queries while a caller waits."""

    def begin(self, texts: Sequence[str]) -> Callable[[], Matrix]:
        """Start embedding. The function returned waits for the unit vectors and returns them
        (n, d); it is to be called once, by the thread that began.
        """
        ...
