"""How often a key may call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.pipeline import Layer

_SWEPT_FROM = 10_000
_MINUTE_S = 60.0
_TOLD_FOR_S = 120.0


@dataclass(slots=True)
class _Bucket:
    """A key's tokens, when it was filled last, its limit, and what was taken from it here since it
    was last quiet for so long that others are told of it no more."""

    tokens: float
    filled_at: float
    per_minute: int
    taken: int = 0
    taken_at: float = float("-inf")

    def fill(self, now: float, per_minute: int) -> None:
        """Let what the time has brought in."""
        rate = per_minute / _MINUTE_S
        self.tokens = min(float(per_minute), self.tokens + (now - self.filled_at) * rate)
        self.filled_at, self.per_minute = now, per_minute

    def is_as_new(self, now: float) -> bool:
        """Tell whether it is full, and nothing was taken from it for a minute."""
        full_in_s = (self.per_minute - self.tokens) * _MINUTE_S / self.per_minute
        return now - max(self.filled_at + full_in_s, self.taken_at + _MINUTE_S) >= 0


class TokenBuckets:
    """A token bucket per key: it holds a minute's calls and fills evenly.

    A key that was quiet for a minute may spend its calls at once; in the long run it makes no more
    than its limit a minute. Buckets live in memory, so a restart fills them. What other servers let
    through is taken from them, too, when it is heard of: then a bucket may lack tokens for a while.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}
        self._sweep_at = _SWEPT_FROM

    def take(self, key_id: str, per_minute: int) -> float:
        """Take one token; return 0, or the seconds until there is one."""
        now = self._clock()
        with self._lock:
            bucket = self._filled(key_id, per_minute, now)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) * _MINUTE_S / per_minute
            bucket.tokens -= 1
            if now - bucket.taken_at >= _TOLD_FOR_S:
                bucket.taken = 0  # Nobody was told of it lately: all of it would count again.
            bucket.taken += 1
            bucket.taken_at = now
            return 0.0

    def spent_elsewhere(self, key_id: str, per_minute: int, calls: int) -> None:
        """Take the tokens of calls that another server has let through."""
        with self._lock:
            self._filled(key_id, per_minute, self._clock()).tokens -= calls

    def counted(self) -> Mapping[str, tuple[int, int]]:
        """Return, of keys that called here in the last two minutes or so, how many calls were let
        through since they were last quiet for longer, and their limits."""
        now = self._clock()
        with self._lock:
            return {
                key: (bucket.taken, bucket.per_minute)
                for key, bucket in self._buckets.items()
                if now - bucket.taken_at < _TOLD_FOR_S
            }

    def _filled(self, key_id: str, per_minute: int, now: float) -> _Bucket:
        bucket = self._buckets.get(key_id)
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._sweep(now)
            bucket = self._buckets[key_id] = _Bucket(float(per_minute), now, per_minute)
        bucket.fill(now, per_minute)
        return bucket

    def _sweep(self, now: float) -> None:
        """Forget the buckets that are as new ones are.

        The next sweep waits until there are twice as many as are left, so that however many keys
        are in use, sweeping costs a constant time a call.
        """
        self._buckets = {k: b for k, b in self._buckets.items() if not b.is_as_new(now)}
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
