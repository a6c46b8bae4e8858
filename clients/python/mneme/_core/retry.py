"""When a call is sent again, and how long it may take in all."""

from __future__ import annotations

import random
from typing import Any

from grpc import StatusCode

from mneme._core.rpc import Rpc
from mneme._core.time_left import TimeLeft
from mneme.errors import MnemeError

_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 2.0
_BACKOFF_FACTOR = 3.0
_REFUSED_BACKOFF_S = 0.02
PATIENCE_S = 30.0
"""How long a client tries again where neither a time nor a number of attempts ends it."""


class Attempts:
    """The attempts of one call: what is left of its time, and when to try again.

    A repeatable RPC is repeated when the server cannot be reached, which may last as long as its
    restart. What a server refuses with a RetryInfo, which it does before anything was written, is
    repeated whatever the RPC, and not before the server is ready for it: gRPC's own retries know
    neither. A stream that was refused is sent again whatever the RPC and the number of attempts: to
    no server was it a first time.

    Args:
        rpc: what is called.
        retries: how often it may be sent again; None: as often as its time allows.
        timeout: seconds for all attempts together; None: no limit.
    """

    def __init__(self, rpc: Rpc[Any, Any], retries: int | None, timeout: float | None) -> None:
        self._rpc = rpc
        self._left = retries
        self._backoff_s = _FIRST_BACKOFF_S
        self._refused_backoff_s = _REFUSED_BACKOFF_S
        self._time_left = TimeLeft(timeout)
        self._patience = TimeLeft(PATIENCE_S) if timeout is None else self._time_left

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return self._time_left()

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next attempt; None when the error is final."""
        if error.unprocessed:
            delay = self._refused_backoff_s
            self._refused_backoff_s = min(delay * _BACKOFF_FACTOR, _LONGEST_BACKOFF_S)
            return self._within(self._patience(), delay)
        if self._left == 0 or not self._may_repeat(error):
            return None
        delay = self._backoff_s if error.retry_after is None else error.retry_after
        if self._left is None:
            pause = self._within(self._patience(), delay)
        else:
            pause = self._within(self.time_left, delay)
            self._left -= 1
        self._backoff_s = min(self._backoff_s * _BACKOFF_FACTOR, _LONGEST_BACKOFF_S)
        return pause

    def _within(self, seconds: float | None, delay: float) -> float | None:
        """The pause, if there is time for it. Callers that were refused together should not come
        back together."""
        pause = delay * random.uniform(1.0, 1.2)
        return None if seconds is not None and pause >= seconds else pause

    def _may_repeat(self, error: MnemeError) -> bool:
        if error.code is StatusCode.UNAVAILABLE:
            return self._rpc.repeatable or error.retry_after is not None
        return error.code is StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
