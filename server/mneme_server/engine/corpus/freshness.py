"""The freshness of an index: that it shows what there is now, though other servers write, too."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from mneme_server.common import deadline
from mneme_server.common.errors import Reason, Unavailable

OLDEST_S = 0.1
"""What is answered is at most so old, by the monotonic clock, when the call looks."""
FOLLOWED_S = 10.0
"""How long after it was used last a tenant's feed is asked for with each look at the feeds; after
that, now and then: however many are open, those are few that are in use."""
PATIENCE_S = 5.0
"""How long a call waits for news of the feed, if it has the time."""
_RETRY_S = 1.0
_MOST = 64


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

    def told(self, number: int, asked_s: float) -> None:
        """Take note that the feed's newest row was this one, at a time of the monotonic clock."""
        with self._changed:
            self._told.append((number, asked_s))
            self._look()
            self._changed.notify_all()

    @property
    def age_s(self) -> float:
        """How long ago the index held all that there was, in seconds, as far as is known."""
        with self._changed:
            self._look()
            return time.monotonic() - self._at

    def require(self) -> None:
        """Return once the index shows what there was `OLDEST_S` ago, or later.

        Raises:
            Unavailable: that cannot be told in time: the store cannot be reached, or the index is
                far behind.
            Abandoned: nobody waits for the call any more.
        """
        with self._changed:
            if self._is_fresh() or deadline.wait_for(self._changed, self._is_fresh, PATIENCE_S):
                return
        raise Unavailable(
            "it cannot be told now whether the answer would be new enough",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )

    def _is_fresh(self) -> bool:
        self._look()
        return time.monotonic() - self._at <= OLDEST_S

    def _look(self) -> None:
        while self._told and self._has(self._told[0][0]):
            self._at = max(self._at, self._told.popleft()[1])
