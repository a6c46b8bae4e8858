"""The change that a transaction made: content and all, as it is passed on when it is committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.ports import VectorBatch


@dataclass(slots=True)
class CorpusChange:
    """What a transaction changed.

    `position` is its row in the feed, once it is committed; None when nothing is to be followed.
    """

    saved: list[Document] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    gone: list[tuple[str, Sequence[int], Sequence[str]]] = field(default_factory=list)
    """Of what was removed: a kind, documents of it, and their sources."""
    vectors: list[VectorBatch] = field(default_factory=list)
    queued: int = 0
    """Documents that were put into the embedding queue, less those that left it."""
    everything: bool = False
    """Whether more changed than the rest says: who follows must begin anew."""
    position: Position | None = None

    def __bool__(self) -> bool:
        """Whether anything that is searched was changed."""
        return bool(self.saved or self.removed or self.vectors or self.everything)
