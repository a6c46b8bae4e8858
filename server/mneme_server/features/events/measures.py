"""What the record of a while comes to, added up: for those who watch it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mneme_server.features.events.history import HistoryFilter

ESCAPE = "\\"
"""What stands in a pattern of `LIKE` before a character that means itself."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What events come to. `first_us` is the time of the oldest; None without any.

    `timed` of them say how long they took, together `duration_us`; the messages of `matches` errors
    match a pattern.
    """

    count: int = 0
    errors: int = 0
    cost_usd: float = 0.0
    timed: int = 0
    duration_us: float = 0.0
    matches: int = 0
    first_us: int | None = None


class RecordMeasures(Protocol):
    """What the tenant's record comes to. Events that tell of alerts are left out everywhere."""

    def totals(self, filter_: HistoryFilter, message_like: str = "") -> Totals:
        """Return what events come to; `message_like` is a pattern of `LIKE`, with `ESCAPE`."""
        ...

    def matching(self, filter_: HistoryFilter, message_like: str) -> Sequence[int]:
        """Return the cursors of the errors whose messages match a pattern of `LIKE`, as `totals`
        counts them."""
        ...

    def last_us(self, filter_: HistoryFilter, until_us: int) -> int | None:
        """Return when the last event up to a time was."""
        ...

    def next_us(self, filter_: HistoryFilter, after_us: int) -> int | None:
        """Return when the first event after a time is: clocks of agents may be ahead."""
        ...

    def ended(self, filter_: HistoryFilter) -> tuple[int, int]:
        """Return how many sessions ended, and how many of them in failure."""
        ...

    def first_failure_us(self, filter_: HistoryFilter) -> int | None:
        """Return when the first of the sessions that ended in failure did."""
        ...

    def nth_latest_us(self, filter_: HistoryFilter, number: int) -> int | None:
        """Return the time of the event after so many later ones; None if there are not so many."""
        ...

    def endings(self, filter_: HistoryFilter) -> Sequence[tuple[int, bool]]:
        """Return when sessions ended, the earliest first, and whether in failure."""
        ...
