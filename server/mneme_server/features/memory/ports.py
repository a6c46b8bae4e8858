"""Ports to what the use cases of memories need from storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.model import JoinedTexts, Memory, MemoryFilter, MemoryPart
from mneme_server.features.memory.values import ValueRange


class MemoryRepository(Protocol):
    """The tenant's memories."""

    def get_many(self, memory_ids: Collection[str]) -> dict[str, Memory]:
        """Return those that exist, by id."""
        ...

    def holding(self, digests: Collection[bytes], *, but: str = "") -> dict[bytes, Memory]:
        """Return those that hold, by digest; of several with one digest, the first stored.

        `but` is the id of a memory to leave out.
        """
        ...

    def superseded_by(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return what each of those that one of these superseded is superseded by, by id."""
        ...

    def successors(self, memory_ids: Collection[str]) -> dict[str, str]:
        """Return by what each of these that exist is superseded, by id; "" for those that hold."""
        ...

    def save(self, memories: Sequence[Memory], doc_ids: Mapping[str, int]) -> None:
        """Insert or replace these memories, but for what they supersede: that is said of those.

        `doc_ids` are the numbers of their documents, by the memories' ids.
        """
        ...

    def mark(self, memory_ids: Collection[str], successor: str, until_us: int | None) -> None:
        """Say by what these are superseded, and until when they held; "" and None: they hold."""
        ...

    def remove(self, memory_ids: Collection[str]) -> None:
        """Remove these memories."""
        ...

    def page(
        self, filter_: MemoryFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Memory]:
        """Return memories, the latest first, that come after the key (since_us, id)."""
        ...

    def count(self, filter_: MemoryFilter) -> int:
        """Return how many match."""
        ...

    def ids(self, filter_: MemoryFilter) -> Sequence[str]:
        """Return the ids of all that match."""
        ...

    def texts(self, filter_: MemoryFilter, what: MemoryPart, after: str, limit: int) -> JoinedTexts:
        """Return what many memories hold, of those that match, by id, after that id.

        It takes a tenth of the time that reading the memories does.
        """
        ...

    def stamps(
        self, filter_: MemoryFilter, after: str, limit: int, places: Collection[int]
    ) -> Sequence[tuple[int, str]]:
        """Return since when the memories at these places hold, and their ids.

        They are places in what `texts` returns for the same filter, in the same unit of work. It
        takes as long again as to read the texts, and mostly there are none.
        """
        ...

    def frequent_tags(self, limit: int) -> tuple[Sequence[tuple[str, int]], int]:
        """Return the most frequent labels with their counts, and how many different ones there
        are."""
        ...

    def frequent_keys(self, limit: int) -> tuple[Sequence[tuple[str, int]], int]:
        """Return the most frequent keys of metadata with their counts, and how many different ones
        there are."""
        ...

    def vectors_of(self, memory_ids: Collection[str]) -> int:
        """Return how many of these have a vector."""
        ...

    def doc_ids(self, span: ValueRange) -> Sequence[int]:
        """Return the numbers of the documents of all whose metadata holds a value in the span."""
        ...

    def by_document(self, doc_ids: Collection[int]) -> Mapping[int, Memory]:
        """Return the memories of documents, by their numbers; those that are gone are left out."""
        ...


class UpliftReader(Protocol):
    """What causal edges say of memories and other things."""

    def uplifts(self, kind: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return what those of these things (by kind and id) of which edges say something surely
        enough change, by id."""
        ...


class MemoriesUnit(CorpusUnit, Protocol):
    """One transaction, as far as memories are concerned."""

    @property
    def causal_edges(self) -> UpliftReader:
        """What brings about what."""
        ...

    @property
    def remembered(self) -> MemoryRepository:
        """The tenant's memories."""
        ...
