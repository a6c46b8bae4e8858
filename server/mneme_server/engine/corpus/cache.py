"""Caches: they follow a tenant's feed, and can be made again of what the store holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeAlias

from mneme_server.engine.corpus.cold_search import ColdIndex
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import FeedRow, Position
from mneme_server.engine.corpus.ports import CorpusIndex, VectorBatch

AT_ONCE = 128
"""Documents that come or go in one step: a millisecond or two."""

Steps: TypeAlias = Sequence[Callable[[], object]]
"""Work in steps of some milliseconds each."""


def do_at_once(steps: Steps) -> None:
    """Do one step after the other."""
    for step in steps:
        step()


@dataclass(slots=True)
class CorpusChange:
    """What a transaction changed, content and all, as it is passed on when it is committed.

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


class Cache(Protocol):
    """A follower of the feed that is made of what the store holds and can be made again.

    It may skip to the newest state: of what rows name it reads what is there by then.
    """

    @property
    def position(self) -> Position:
        """The row of the feed up to which it holds what there is; it may hold more."""
        ...

    @property
    def partial(self) -> bool:
        """Whether it failed: it may hold less than it should until another is built."""
        ...

    def applying(self, change: CorpusChange) -> Steps:
        """Return what applies a change that was just committed, the next after `position`."""
        ...

    def catching_up(self, rows: Sequence[FeedRow]) -> Steps:
        """Return what makes up for rows after `position`, whether some of it was applied or not.

        Raises:
            LostPlace: they say that everything changed.
        """
        ...

    def on_failure(self, told: Callable[[], object]) -> None:
        """Have `told` called, on any thread, whenever a part fails. It must not wait."""
        ...

    def missed(self, error: BaseException) -> None:
        """Note that what was committed could not be applied, as a failure."""
        ...

    def abandon(self) -> None:
        """Write nothing more to the disk; it is used and added to until it is discarded."""
        ...

    def discard(self) -> None:
        """Release everything of an abandoned one."""
        ...

    def close(self) -> None:
        """Write what must be kept and free the rest."""
        ...

    def rebuilt(self, *, clean: bool = False) -> Self:
        """Build another from the store; this one must be abandoned. A `clean` one keeps nothing of
        what was removed, nor of what it was called.

        What is committed meanwhile it is told to catch up with afterwards.
        """
        ...

    def write(self) -> None:
        """Write everything that is kept on the disk, in the place of what lies there.

        Raises:
            OSError: it cannot be written.
        """
        ...


class ManagedIndex(CorpusIndex, Cache, Protocol):
    """An index with a life of its own."""

    @property
    def mode(self) -> str:
        """How vectors are searched: "exact" or "hnsw"."""
        ...

    @property
    def document_count(self) -> int:
        """Documents that can be found."""
        ...

    @property
    def vector_count(self) -> int:
        """Vectors that are searched."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that it holds. It takes some microseconds."""
        ...

    @property
    def vector_bytes(self) -> int:
        """Those of them that vectors take, with the graphs that lead through them."""
        ...

    @property
    def cold_index(self) -> ColdIndex | None:
        """What answers in its place where it only stands for one that is being built; else None."""
        ...
