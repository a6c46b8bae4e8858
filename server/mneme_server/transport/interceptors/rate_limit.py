"""How often a key may call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.transport.call import Call
from mneme_server.transport.pipeline import Layer

_SWEPT_FROM = 10_000
_MINUTE_S = 60.0


class TokenBuckets:
    """A token bucket per key: it holds a minute's calls and fills evenly.

    A key that was quiet for a minute may spend its calls at once; in the long run it makes no more
    than its limit a minute. Buckets live in memory, so a restart fills them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}
        self._sweep_at = _SWEPT_FROM

    def take(self, key_id: str, per_minute: int) -> float:
        """Take one token; return 0, or the seconds until there is one."""
        now = self._clock()
        with self._lock:
            if key_id not in self._buckets and len(self._buckets) >= self._sweep_at:
                self._sweep(now)
            tokens, filled_at = self._buckets.get(key_id, (float(per_minute), now))
            rate = per_minute / _MINUTE_S
            tokens = min(float(per_minute), tokens + (now - filled_at) * rate)
            if tokens < 1:
                self._buckets[key_id] = (tokens, now)
                return (1 - tokens) / rate
            self._buckets[key_id] = (tokens - 1, now)
            return 0.0

    def _sweep(self, now: float) -> None:
        """Forget what nobody touched for a minute: such a bucket is full, as a new one is.

        The next sweep waits until there are twice as many as are left, so that however many keys
        are in use, sweeping costs a constant time a call.
        """
        self._buckets = {k: b for k, b in self._buckets.items() if now - b[1] < _MINUTE_S}
        self._sweep_at = max(_SWEPT_FROM, 2 * len(self._buckets))


def rate_limit(buckets: TokenBuckets) -> Layer:
    """Return the layer that refuses calls beyond the key's limit. A stream counts as one call."""

    def limit(call: Call) -> None:
        if call.method.scope is not None and call.caller.rate_limit:
            wait = buckets.take(call.caller.key_id, call.caller.rate_limit)
            if wait:
                raise ResourceExhausted(
                    f"the API key may make {call.caller.rate_limit} calls a minute; try again in"
                    f" {wait:.1f} s",
                    reason=Reason.RATE_LIMITED,
                    retry_after_s=wait,
                )

    return limit
