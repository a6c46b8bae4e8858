"""Room in memory for the requests at work, where memory is limited.

A library that finds no memory may end the process: gRPC and the model's runtime are written in C++,
the word index in Rust. So requests are let in only while enough is free that none of them has to
ask in vain.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from mneme_server.common import deadline
from mneme_server.common.errors import ResourceExhausted
from mneme_server.common.process_limits import (
    LEAST_FOR_REQUESTS_BYTES,
    MIB,
    RESERVE_BYTES,
    MemoryLimit,
    give_back,
    stacks,
    too_small,
)

_log = structlog.get_logger(__name__)

_FACTOR = 5
"""Bytes that a request takes at its peak, for each that travelled; 4.4 to 4.9 were measured."""
_LEAST_FREE_BYTES = 16 * MIB
"""With less, even small calls are refused."""
_COPIES = 2
"""Of a request whose bytes are complete: gRPC's and this process's."""
_SMALLEST_MESSAGE = 64 * 1024

_PATIENCE_S = 1.0
_LOOK_EVERY_S = 0.1
_TIDY_EVERY_S = 1.0


class Room:
    """Shares out what a limit leaves. Thread-safe.

    Args:
        limit: what limits the memory.
        threads: that serve calls; each may be receiving a request of which nothing is known yet.

    Raises:
        FailedPrecondition: the limit leaves too little to serve.
    """

    def __init__(self, limit: MemoryLimit, threads: int) -> None:
        self._limit = limit
        least = max(LEAST_FOR_REQUESTS_BYTES, _COPIES * threads * _SMALLEST_MESSAGE)
        spare = limit.free() - RESERVE_BYTES
        if limit.address_space:
            spare -= stacks(threads)
        if spare < least:
            raise too_small(limit, limit.bytes + least - spare, threads)
        self._changed = threading.Condition()  # Guards what follows.
        self._left = spare
        self._queue: deque[object] = deque()
        self._tidied_s = float("-inf")
        self.max_message_bytes = spare // (_COPIES * threads)
        """The largest message that all threads may be receiving at once."""
        _log.info(
            "memory is limited; larger requests are refused, and others wait for memory",
            limit=limit.name,
            limit_mib=limit.bytes // MIB,
            requests_mib=spare // MIB,
            largest_request_bytes=self.max_message_bytes,
        )

    def check(self) -> None:
        """Look whether a call may begin at all.

        Raises:
            ResourceExhausted: so little is free that a library might find none.
        """
        if self._limit.free() < _LEAST_FREE_BYTES:
            self._tidy()
            if self._limit.free() < _LEAST_FREE_BYTES:
                raise short_of_memory()

    @contextmanager
    def taken(self, request_bytes: int) -> Iterator[None]:
        """Hold the room that a request of this size takes; wait a moment for it, in turn.

        Raises:
            ResourceExhausted: there was none in time.
            Abandoned: nobody waits for the call any more.
        """
        needed = request_bytes * _FACTOR
        self._take(needed)
        try:
            yield
        finally:
            with self._changed:
                self._left += needed
                self._changed.notify_all()

    def _take(self, needed: int) -> None:
        until = time.monotonic() + _PATIENCE_S
        me = object()
        with self._changed:
            self._queue.append(me)
            try:
                while self._queue[0] is not me or not self._fits(needed):
                    deadline.check()
                    left = until - time.monotonic()
                    if left <= 0:
                        raise short_of_memory()
                    self._changed.wait(min(left, _LOOK_EVERY_S))
                self._left -= needed
            finally:
                self._queue.remove(me)
                self._changed.notify_all()

    def _fits(self, needed: int) -> bool:
        if needed > self._left:
            return False
        # What else the server holds grows, too: its tenants' memories.
        if self._limit.free() >= RESERVE_BYTES + needed:
            return True
        self._tidy()
        return self._limit.free() >= RESERVE_BYTES + needed

    def _tidy(self) -> None:
        """Have freed memory given back, once in a while."""
        if time.monotonic() - self._tidied_s >= _TIDY_EVERY_S:
            self._tidied_s = time.monotonic()
            give_back()


def short_of_memory() -> ResourceExhausted:
    """Return what a call is refused with that there is no memory for."""
    return ResourceExhausted(
        "the server is short of memory for this call; try again, or ask for less at a time",
        retry_after_s=_PATIENCE_S,
    )
