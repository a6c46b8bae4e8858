"""The newest rows of a tenant's feed, as far as they were written here."""

from __future__ import annotations

from collections import OrderedDict

from mneme_server.corpus.feed import Position

_MARKS = 4_096
"""Rows whose marks are known without a look at the store."""


class KnownRows:
    """Their marks by their numbers. One thread at a time may add to them.

    Args:
        head: the newest.
    """

    def __init__(self, head: Position) -> None:
        self.head = head
        self._marks = OrderedDict([head])

    def note(self, position: Position) -> None:
        """Add the next row."""
        self.head = position
        self._marks[position.number] = position.mark
        if len(self._marks) > _MARKS:
            self._marks.popitem(last=False)

    def mark_of(self, number: int) -> int | None:
        """Return the mark of a row; None where it is not known."""
        return self._marks.get(number)
