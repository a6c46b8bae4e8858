"""Limits on open streams, and their end when the server stops."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from mneme_server.common.errors import Reason, ResourceExhausted, Unavailable
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.methods import StreamKind

_RETRY_S = 5.0
_RESUME_S = 1.0
_PUBLIC_S = 60.0


class StreamSlots:
    """Seats for calls that last for as long as the caller likes.

    Each kind has its own, so that none takes another's. Of a kind's seats a tenant gets half at
    most, so that others can have some whatever it does. What needs no key is cut off after a
    minute: nobody answers for it. What the pool has beyond all seats is always there for other
    calls.

    Args:
        seats: streams served at once, of each kind.
        watchdog: cuts streams off whose time is up.
        tenant_watches: of the seats of watches, so many at most are one tenant's.
    """

    def __init__(
        self, seats: Mapping[StreamKind, int], watchdog: Watchdog, *, tenant_watches: int
    ) -> None:
        self._seats = dict(seats)
        self._watchdog = watchdog
        self._shares = {kind: max(1, seats // 2) for kind, seats in self._seats.items()}
        watches = self._shares[StreamKind.WATCH]
        self._shares[StreamKind.WATCH] = min(watches, tenant_watches)
        self._lock = threading.Lock()
        self._open: dict[StreamKind, set[Call]] = {kind: set() for kind in StreamKind}
        self._watched_elsewhere: Mapping[str, int] = {}
        self._stopping = False

    @property
    def open_streams(self) -> int:
        """Streams being served."""
        return sum(len(calls) for calls in self._open.values())

    def watches_of_tenants(self) -> Mapping[str, int]:
        """Return how many watches each tenant has here."""
        with self._lock:
            return Counter(call.tenant_id for call in self._open[StreamKind.WATCH])

    def watched_elsewhere(self, watches: Mapping[str, int]) -> None:
        """Take note of how many watches each tenant has on other servers: they count, too."""
        self._watched_elsewhere = watches

    def layer(self, call: Call) -> AbstractContextManager[None] | None:
        """Seat the call if it is a stream, or refuse it; say why when the server ended it."""
        return None if call.method.stream is None else self._seated(call.method.stream, call)

    @contextmanager
    def _seated(self, kind: StreamKind, call: Call) -> Iterator[None]:
        self._sit(kind, call)
        try:
            with self._limit(kind, call):
                yield
        finally:
            with self._lock:
                self._open[kind].discard(call)
        if self._stopping and call.was_cut_short:
            raise stopping_error()

    def end_all(self) -> None:
        """Refuse new streams and end those that may stay open. The others may finish."""
        with self._lock:
            self._stopping = True
            told = [*self._open[StreamKind.WATCH], *self._open[StreamKind.UPLOAD]]
            public = list(self._open[StreamKind.PUBLIC])
        for call in told:
            call.end()
        for call in public:
            call.cancel()

    def _limit(self, kind: StreamKind, call: Call) -> AbstractContextManager[None]:
        if kind is not StreamKind.PUBLIC:
            return nullcontext()
        return self._watchdog.limit(_PUBLIC_S, call.cancel)

    def _sit(self, kind: StreamKind, call: Call) -> None:
        with self._lock:
            if self._stopping:
                raise stopping_error()
            if len(self._open[kind]) >= self._seats[kind]:
                raise _too_many(f"the server serves {self._seats[kind]} {kind.value}")
            if kind is not StreamKind.PUBLIC:
                share = self._shares[kind]
                taken = sum(c.tenant_id == call.tenant_id for c in self._open[kind])
                if kind is StreamKind.WATCH:
                    taken += self._watched_elsewhere.get(call.tenant_id, 0)
                if taken >= share:
                    raise _too_many(f"a tenant may have {share} {kind.value}")
            self._open[kind].add(call)


def _too_many(rule: str) -> ResourceExhausted:
    return ResourceExhausted(
        f"{rule} at once, and that many are open; try again when one has ended",
        reason=Reason.TOO_MANY_STREAMS,
        retry_after_s=_RETRY_S,
    )


def stopping_error() -> Unavailable:
    """Return what a call is told that the server does not take any more, or ends."""
    return Unavailable(
        "the server is shutting down; try again in a moment",
        reason=Reason.INITIALIZATION_FAILED,
        retry_after_s=_RESUME_S,
    )
