"""Streams that go on where they broke off."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message
from grpc import StatusCode

from mneme._core.retry import PATIENCE_S, Attempts
from mneme._core.rpc import Rpc
from mneme._core.time_left import TimeLeft
from mneme.errors import MnemeError

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_BROKEN = frozenset({StatusCode.INTERNAL, StatusCode.CANCELLED})
"""What gRPC makes of some broken connections, and of a stream whose messages were not taken in
time; where a server says so, it gives a reason."""


def is_passing(error: MnemeError) -> bool:
    """Whether a stream that ended so may go on: it broke off, or is refused for a while."""
    return (
        error.code is StatusCode.UNAVAILABLE
        or (error.code is StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None)
        or (error.code in _BROKEN and not error.reason)
    )


class Backoff:
    """When to come back after a stream that broke off, and when to give it up.

    Args:
        patience_s: seconds after which it is given up, counted from when it broke off: before that
            there may have been nothing to say for long. 0: at once.
        timeout: seconds for all of it; None: no limit.
    """

    def __init__(self, patience_s: float, timeout: float | None) -> None:
        self._patience_s = patience_s
        self._time_left = TimeLeft(timeout)
        self._lost_at: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return self._time_left()

    def reset(self) -> None:
        """Begin anew: something came of it."""
        self._lost_at = None
        self._pause_s = _FIRST_PAUSE_S

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next call; None when the error is final."""
        if not is_passing(error):
            return None
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        # Clients that lost the same server should not come back together.
        pause = max(error.retry_after or 0.0, self._pause_s) * random.uniform(1.0, 1.2)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        if now + pause > self._lost_at + self._patience_s:
            return None
        if self.time_left is not None and pause >= self.time_left:
            return None
        return pause


class Resumption:
    """One stream, over all the calls that it takes: it begins as any call does, and goes on where
    it broke off if it can be resumed.

    Args:
        rpc: what is called.
        fields: the request's.
        attempts: to begin.
        patience_s: seconds after which a stream that broke off is given up; 0: at once.
    """

    def __init__(
        self, rpc: Rpc[Any, Any], fields: Mapping[str, Any], attempts: Attempts, patience_s: float
    ) -> None:
        self.request: Message = rpc.build(fields)
        self._fields = rpc.resumed_by
        self._attempts = attempts
        self._backoff = Backoff(patience_s if rpc.resumed_by else 0.0, attempts.time_left)
        self._begun = False
        self._resumed = False

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return self._attempts.time_left

    def next_request(self) -> Message:
        """A copy of the request for the next call: gRPC may read it while this one moves on."""
        request = type(self.request)()
        request.CopyFrom(self.request)
        return request

    def is_news(self, message: Message) -> bool:
        """Note how far the stream has come; tell whether the message is for the caller.

        The first one of a call that resumes only says from where.
        """
        greets, self._resumed = self._resumed, False
        self._begun = True
        self._backoff.reset()
        if self._fields is not None:
            place, after = self._fields
            setattr(self.request, after, getattr(message, place))
        return not greets

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next call; None when the error is final."""
        if not self._begun:
            return self._attempts.pause_after(error)
        pause = self._backoff.pause_after(error)
        self._resumed = pause is not None
        return pause


def patience_of(retries: int | None, limit_s: float | None) -> float:
    """Return how long a client is patient with a stream that broke off, in seconds.

    Args:
        retries: how often it sends a call again; None: as often as its time allows; 0: nothing is
            resumed.
        limit_s: its time for a call; None: no limit.
    """
    return 0.0 if retries == 0 else PATIENCE_S if limit_s is None else limit_s
