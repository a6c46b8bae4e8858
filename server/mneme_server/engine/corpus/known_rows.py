"""Rows of a tenant's feed whose marks are known without a look at the store."""

from __future__ import annotations

from collections import OrderedDict

from mneme_server.engine.corpus.feed import Position

_MARKS = 4_096
"""Rows whose marks are known without a look at the store."""


class KnownRows:
    """Their marks by their numbers, the last that were learnt.

    Args:
        head: the newest that was written here; one thread at a time notes the next.
    """

    def __init__(self, head: Position) -> None:
        self.head = head
        self._marks = OrderedDict([head])

    def note(self, position: Position) -> None:
        """Add the next row."""
        self.head = position
        self.learn(position)

    def learn(self, position: Position) -> None:
        """Add a row that the store was found to hold. For any thread."""
        self._marks[position.number] = position.mark
        if len(self._marks) > _MARKS:
            self._marks.popitem(last=False)

    def mark_of(self, number: int) -> int | None:
        """Return the mark of a row; None where it is not known."""
        return self._marks.get(number)
