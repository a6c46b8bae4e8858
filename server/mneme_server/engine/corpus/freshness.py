"""The freshness of an index: that it shows what there is now, though other servers write, too."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from mneme_server.common import deadline
from mneme_server.common.errors import Reason, Unavailable

OLDEST_S = 0.1
"""What is answered is at most so old, by the monotonic clock, when the call looks."""
FOLLOWED_S = 10.0
"""How long after it was used last a tenant's feed is asked for with each look at the feeds; after
that, now and then: however many are open, those are few that are in use."""
CLOSELY_S = 1.0
"""For how long a tenant that was searched twice is followed closely: what others write is in the
index before it is searched again. Searched less often than that, it catches up as it is."""
APART_S = 0.1
"""Searches nearer to each other count as one: a call may look several times."""
PATIENCE_S = 5.0
"""How long a call waits for news of the feed, if it has the time."""
_RETRY_S = 1.0
_MOST = 64


class Searches:
    """When a tenant was searched, and whether that is often. Thread-safe, as nearly as matters."""

    def __init__(self) -> None:
        self._last_s = self._before_s = float("-inf")

    def note(self) -> None:
        """Note that it is searched now."""
        now = time.monotonic()
        if now - self._last_s >= APART_S:
            self._before_s = self._last_s
            self._last_s = now

    @property
    def are_frequent(self) -> bool:
        """Whether it was searched twice in the last `CLOSELY_S`."""
        return time.monotonic() - self._before_s < CLOSELY_S


class Freshness:
    """What is known of how fresh an index is. Thread-safe.

    Args:
        has: tells whether the index holds what there is up to a row of the feed.
        since_s: when it held all that there was, by the monotonic clock.
    """

    def __init__(self, has: Callable[[int], bool], since_s: float) -> None:
        self._has = has
        self._changed = threading.Condition()
        self._told: deque[tuple[int, float]] = deque(maxlen=_MOST)
        self._at = since_s
        self._newest = 0
        self._newest_at = float("-inf")

    def told(self, number: int, asked_s: float) -> None:
        """Take note that the feed's newest row was this one, at a time of the monotonic clock."""
        with self._changed:
            self._told.append((number, asked_s))
            self._newest = max(self._newest, number)
            self._newest_at = max(self._newest_at, asked_s)
            self._look()
            self._changed.notify_all()

    def was_told(self, now_s: float) -> bool:
        """Tell whether it was told, no more than `OLDEST_S` before a time, where the feed is."""
        return now_s - self._newest_at <= OLDEST_S

    @property
    def newest(self) -> int:
        """The newest row of the feed that it was told of."""
        return self._newest

    @property
    def age_s(self) -> float:
        """How long ago the index held all that there was, in seconds, as far as is known."""
        with self._changed:
            self._look()
            return time.monotonic() - self._at

    def require(self, now_s: float | None = None) -> None:
        """Return once the index shows what there was `OLDEST_S` before a time, or later.

        Args:
            now_s: when it was asked for, by the monotonic clock; None: it is now.

        Raises:
            Unavailable: that cannot be told in time: the store cannot be reached, or the index is
                far behind.
            Abandoned: nobody waits for the call any more.
        """
        at = time.monotonic() if now_s is None else now_s
        with self._changed:
            if deadline.wait_for(self._changed, partial(self._is_fresh, at), PATIENCE_S):
                return
        raise Unavailable(
            "it cannot be told now whether the answer would be new enough",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )

    def _is_fresh(self, now_s: float) -> bool:
        self._look()
        return now_s - self._at <= OLDEST_S

    def _look(self) -> None:
        while self._told and self._has(self._told[0][0]):
            self._at = max(self._at, self._told.popleft()[1])
