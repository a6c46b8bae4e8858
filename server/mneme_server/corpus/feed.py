"""The feed: what each commit changed, by its number, so that whoever keeps up knows what to read.

A row names what changed and holds none of it. Whoever follows reads the rest from the database, as
it is by then, and remembers the row it came to last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from mneme_server.corpus.document import Document
from mneme_server.corpus.ports import VectorBatch

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Whole numbers: runs of them, each with its first and its last, in order."""


class Position(NamedTuple):
    """A row of the feed: its number, from 1 without gaps, and its random mark.

    Where the row of a number bears another mark, the database is not the one that was followed.
    """

    number: int
    mark: int


START = Position(0, 0)
"""Before the first row."""


class LostPlace(Exception):
    """The feed does not have the row that a follower came to last: it must begin anew."""


@dataclass(frozen=True, slots=True)
class KindChange:
    """What a commit changed of one kind of memory.

    Args:
        kind: its name.
        saved: the documents that were added, or whose attributes changed.
        removed: those that are gone.
        saved_ids: the sources of the former; empty for a kind whose memories are never removed.
        removed_ids: the sources of the latter.
        commitment: SHA-256, in hex, over the commitments of those that were saved, in the order of
            their ids; empty where a memory has none.
    """

    kind: str
    saved: Ranges = ()
    removed: Ranges = ()
    saved_ids: tuple[str, ...] = ()
    removed_ids: tuple[str, ...] = ()
    commitment: str = ""


@dataclass(frozen=True, slots=True)
class FeedRow:
    """What a commit changed. What it names has the row's number as its version.

    `embedded` are documents whose vectors came. With `everything` the rest is empty: nothing that
    was there before may be relied on.
    """

    position: Position
    kinds: tuple[KindChange, ...] = ()
    embedded: Ranges = ()
    everything: bool = False


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


class Feed(Protocol):
    """A tenant's feed, in one transaction."""

    def generation(self) -> int | None:
        """Return what names this store among all that hold the tenant, or held it before; None
        before the first was made."""
        ...

    def renew_generation(self) -> int:
        """Give the store another name, since its rows are no longer those that were known."""
        ...

    def head(self) -> Position:
        """Return the newest row; `START` before the first."""
        ...

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        """Return up to `limit` rows after `place`, in order; none when it is the newest.

        Raises:
            LostPlace: there is no such row any more, or it bears another mark.
        """
        ...

    def position_of(self, follower: str) -> Position | None:
        """Return how far a durable follower came; None before its first step."""
        ...

    def move(self, follower: str, before: Position | None, to: Position) -> bool:
        """Note, with what else this transaction writes, how far a durable follower came.

        Its next rows are kept until it moves on. Returns False, and notes nothing, when it is not
        at `before`: another place runs it too.
        """
        ...

    def forget(self, follower: str) -> None:
        """Hold back nothing more for a durable follower that is no longer run."""
        ...


def ranges(numbers: Iterable[int]) -> Ranges:
    """Pack whole numbers, in any order, into runs."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return tuple(runs)


def numbers_of(runs: Ranges) -> Iterator[int]:
    """Yield the numbers that `ranges` packed, in order."""
    for first, last in runs:
        yield from range(first, last + 1)
