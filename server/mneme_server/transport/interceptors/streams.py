"""How many streams may hold a thread, and how they end when the server stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mneme_server.common.errors import Reason, ResourceExhausted, Unavailable
from mneme_server.transport.call import Call

_RETRY_S = 5.0
_RESUME_S = 1.0


class StreamSlots:
    """Seats for calls that hold a thread for as long as the caller likes.

    There are two kinds, so that neither takes the other's seats: long-lived streams, such as
    WatchEvents, and uploads, whose length the client decides. What the pool has beyond both is
    always there for other calls.

    Args:
        long_lived: long-lived streams served at once.
        uploads: uploads served at once.
    """

    def __init__(self, long_lived: int, uploads: int) -> None:
        self._limits = {"long-lived streams": long_lived, "uploads": uploads}
        self._lock = threading.Lock()
        self._open: dict[str, set[Call]] = {kind: set() for kind in self._limits}
        self._stopping = False

    @property
    def open_streams(self) -> int:
        """Streams and uploads being served."""
        return sum(len(calls) for calls in self._open.values())

    @contextmanager
    def layer(self, call: Call) -> Iterator[None]:
        """Seat the call if it is a stream, or refuse it; say why when the server ended it."""
        if call.method.long_lived:
            kind = "long-lived streams"
        elif call.method.uploads:
            kind = "uploads"
        else:
            yield
            return
        self._sit(kind, call)
        try:
            yield
        finally:
            with self._lock:
                self._open[kind].discard(call)
        if self._stopping and call.ended:
            raise _stopping_error()

    def end_all(self) -> None:
        """Refuse new streams and end the long-lived ones. Uploads may finish."""
        with self._lock:
            self._stopping = True
            calls = list(self._open["long-lived streams"])
        for call in calls:
            call.end()

    def _sit(self, kind: str, call: Call) -> None:
        with self._lock:
            if self._stopping:
                raise _stopping_error()
            if len(self._open[kind]) >= self._limits[kind]:
                raise ResourceExhausted(
                    f"the server serves {self._limits[kind]} {kind} at once, and that many are"
                    " open; try again when one has ended",
                    reason=Reason.TOO_MANY_STREAMS,
                    retry_after_s=_RETRY_S,
                )
            self._open[kind].add(call)


def _stopping_error() -> Unavailable:
    return Unavailable(
        "the server is shutting down; resume the stream in a moment",
        reason=Reason.INITIALIZATION_FAILED,
        retry_after_s=_RESUME_S,
    )
