"""The settings of an index: what can be tuned, and where it reports what it did on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How an index trades memory, time and recall. The defaults are measured ones."""

    exact_limit: int = 20_000
    """Vectors that are searched exactly; beyond it a graph is built."""
    graph_neighbours: int = 16
    """HNSW's M: links per vector and layer."""
    ef_construction: int = 64
    """Breadth of the search for links while the graph is built."""
    ef_search: int = 128
    """Breadth of a search in the graph."""
    exact_selected: int = 20_000
    """Selected vectors up to which the graph's codes are scanned instead of walking the graph."""
    rescore: int = 48
    """Graph candidates whose cosine is computed again from the stored vectors; 0 for none."""
    merge_at: int = 2_000
    """Vectors waiting beside the graph until they are merged into it."""
    merge_share: float = 1 / 64
    """And the share of the graph that they are: to merge takes a copy of it."""
    graph_limit: int = 250_000
    """Vectors in a graph from which the next ones begin another, so that to add a few never means
    to copy all."""
    graph_share: float = 0.25
    """And the share of all vectors: so graphs grow with the tenant, and stay few."""
    snapshot_after: int = 20_000
    """Vectors added since the last snapshot until the next is written."""
    snapshot_share: float = 0.05
    """And the share of all vectors."""
    commit_after: int = 5_000
    """Documents waiting until whoever adds more commits them first: the background is behind."""
    counted_limit: int = 2_000
    """Documents up to which the words of all are counted in memory, some 700 bytes each: so many
    are looked through about as fast as tantivy finds the best of them."""
    commit_from: int = 256
    """Documents waiting from which they are soon committed in the background: a commit costs as
    much as some hundred documents in it."""
    commit_characters: int = 1_000_000
    """And the characters that they have."""
    commit_share: float = 0.05
    """And, of more than are counted, the share of the committed ones: only those tell how rare a
    word is."""
    commit_delay_s: float = 0.25
    """Seconds until then."""
    quiet_s: float = 300.0
    """Seconds without additions after which fewer are committed, too, and the copy is written."""
    writer_idle_s: float = 10.0
    """And those after which the lexical writer gives its memory back, if there is one."""
    words_unused_s: float = 10.0
    """Seconds without additions or searches after which the words' files are closed. While they are
    open tantivy takes as much processor time in three seconds as it takes to open them, of a large
    index in nine."""
    query_terms: int = 256
    """Distinct terms of a query that are searched for: the rarest ones are kept."""


class IndexLog(Protocol):
    """Where an index reports what it did on its own: a structured log; structlog's loggers are
    one."""

    def info(self, event: str, /, **fields: object) -> object:
        """Report something that happened as planned."""
        ...

    def warning(self, event: str, /, **fields: object) -> object:
        """Report something that an operator should know of."""
        ...


class NoLog:
    """Keeps everything to itself."""

    def info(self, event: str, /, **fields: object) -> None:
        """Do nothing."""

    def warning(self, event: str, /, **fields: object) -> None:
        """Do nothing."""
