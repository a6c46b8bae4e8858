"""The feed: what each commit changed, by its number, so that whoever keeps up knows what to read.

A row names what changed and holds none of it. Whoever follows reads the rest from the database, as
it is by then, and remembers the row it came to last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

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

    @property
    def documents(self) -> int:
        """How many documents it names; one that came with its vector counts twice."""
        runs = [*self.embedded]
        for kind in self.kinds:
            runs += (*kind.saved, *kind.removed)
        return sum(last - first + 1 for first, last in runs)


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

    def holds(self, place: Position) -> bool:
        """Return whether what was written up to there is in the store: its row is there with its
        mark, or is older than all that are kept."""
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


@dataclass(slots=True)
class TouchedDocuments:
    """What rows of the feed name together, as numbers of documents."""

    saved: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    embedded: set[int] = field(default_factory=set)

    def take(self, rows: Iterable[FeedRow]) -> None:
        """Add what these rows name, which come after all that were taken before.

        Raises:
            LostPlace: a row says that everything changed.
        """
        for row in rows:
            if row.everything:
                raise LostPlace(f"row {row.position.number} of the feed changed everything")
            saved = {number for kind in row.kinds for number in numbers_of(kind.saved)}
            self.saved |= saved
            self.removed -= saved  # Removed before it was there; whoever reads it will see.
            self.removed.update(number for kind in row.kinds for number in numbers_of(kind.removed))
            self.embedded.update(numbers_of(row.embedded))

    @property
    def there(self) -> set[int]:
        """Documents that the store should still have."""
        return (self.saved | self.embedded) - self.removed


def ranges(numbers: Iterable[int], gap: int = 0) -> Ranges:
    """Pack whole numbers, in any order, into runs; with gaps of up to `gap` numbers in them."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number - runs[-1][1] - 1 <= gap:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return tuple(runs)


def numbers_of(runs: Ranges) -> Iterator[int]:
    """Yield the numbers that `ranges` packed, in order."""
    for first, last in runs:
        yield from range(first, last + 1)
