"""When a refused call is sent again, and how long it may take in all."""

from __future__ import annotations

import random
import time
from typing import Any

from grpc import StatusCode

from mneme._core.rpc import Rpc
from mneme.errors import MnemeError


class Attempts:
    """The attempts of one call: what is left of its time, and when to try again.

    The channel itself repeats repeatable RPCs when the server cannot be reached. What is left
    for here is what a server refuses with a RetryInfo, which it does before anything was
    written: such a call is repeated whatever the RPC.

    Args:
        rpc: what is called.
        retries: how often it may be sent again.
        timeout: seconds for all attempts together; None: no limit.
    """

    def __init__(self, rpc: Rpc[Any, Any], retries: int, timeout: float | None) -> None:
        self._rpc = rpc
        self._left = retries
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next attempt; None when the error is final."""
        if self._left == 0 or error.retry_after is None or not self._is_ours(error):
            return None
        # Callers that were refused together should not come back together.
        pause = error.retry_after * random.uniform(1.0, 1.2)
        if self.time_left is not None and pause >= self.time_left:
            return None
        self._left -= 1
        return pause

    def _is_ours(self, error: MnemeError) -> bool:
        if error.code is StatusCode.UNAVAILABLE:
            return not self._rpc.repeatable
        return error.code is StatusCode.RESOURCE_EXHAUSTED
