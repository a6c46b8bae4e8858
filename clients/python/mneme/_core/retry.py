"""When a call is sent again, and how long it may take in all."""

from __future__ import annotations

import random
from typing import Any

from grpc import StatusCode

from mneme._core.rpc import Rpc
from mneme._core.time_left import TimeLeft
from mneme.errors import MnemeError

_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 5.0
_BACKOFF_FACTOR = 3.0


class Attempts:
    """The attempts of one call: what is left of its time, and when to try again.

    A repeatable RPC is repeated when the server cannot be reached. What a server refuses with a
    RetryInfo, which it does before anything was written, is repeated whatever the RPC, and not
    before the server is ready for it: gRPC's own retries know neither.

    Args:
        rpc: what is called.
        retries: how often it may be sent again.
        timeout: seconds for all attempts together; None: no limit.
    """

    def __init__(self, rpc: Rpc[Any, Any], retries: int, timeout: float | None) -> None:
        self._rpc = rpc
        self._left = retries
        self._backoff_s = _FIRST_BACKOFF_S
        self._time_left = TimeLeft(timeout)

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return self._time_left()

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next attempt; None when the error is final."""
        if self._left == 0 or not self._may_repeat(error):
            return None
        delay = self._backoff_s if error.retry_after is None else error.retry_after
        # Callers that were refused together should not come back together.
        pause = delay * random.uniform(1.0, 1.2)
        if self.time_left is not None and pause >= self.time_left:
            return None
        self._left -= 1
        self._backoff_s = min(self._backoff_s * _BACKOFF_FACTOR, _LONGEST_BACKOFF_S)
        return pause

    def _may_repeat(self, error: MnemeError) -> bool:
        if error.code is StatusCode.UNAVAILABLE:
            return self._rpc.repeatable or error.retry_after is not None
        return error.code is StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
