"""Peers that are slow: with the message of a request, or to take an answer.

gRPC itself waits for both as long as a peer likes, and keeps meanwhile what it has of them. Here a
message is asked for only when the call may be served, so that what comes without a key is never
more than a stream's window; it has some time to arrive; and what nobody reads is let go of.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

import grpc
import structlog

from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import InvalidArgument
from mneme_server.common.watchdog import Limit, Watchdog
from mneme_server.edge.grpc.call import Call

RECEIVE_S = 60.0
"""How long the message of a request may take to arrive."""
RECEIVE_UNKNOWN_S = 10.0
"""The same where no key is needed: such messages are small."""
TAKE_S = 60.0
"""How long a peer may take to read an answer, or one of a stream."""

_MOST_UNKNOWN = 4
"""Messages that arrive at once where no key is needed; each may be as large as any."""
_PROMPT_S = 0.1
"""How long one of them is left alone when others wait."""
_MOST_BYTES = 256 * 1024 * 1024
_FRESH_S = 1.0
"""How long an answer is left alone when others need its room."""

_log = structlog.get_logger(__name__)


class Exchange(Protocol):
    """How what an edge has of requests becomes what is read, and answers become what it sends."""

    def receive(self, call: Call, raw: Any) -> Any:
        """Return the request."""
        ...

    def give(self, call: Call, answer: Any, serialize: Callable[[Any], bytes] | None) -> Any:
        """Return the answer."""
        ...

    def give_all(
        self, call: Call, answers: Iterable[Any], serialize: Callable[[Any], bytes] | None
    ) -> Iterator[Any]:
        """Yield the answers."""
        ...


class Direct:
    """The exchange of an edge that has the request, and takes the answers, by itself."""

    def receive(self, call: Call, raw: Any) -> Any:
        """See `Exchange`."""
        return raw

    def give(self, call: Call, answer: Any, serialize: Callable[[Any], bytes] | None) -> Any:
        """See `Exchange`."""
        return answer

    def give_all(
        self, call: Call, answers: Iterable[Any], serialize: Callable[[Any], bytes] | None
    ) -> Iterator[Any]:
        """See `Exchange`."""
        yield from answers


class Peers:
    """The exchange with gRPC's peers: they are given time, and room for what they have not read.

    Of that room a tenant gets no more than it leaves free, as with the places of calls: half while
    it is alone. Where it needs more, its own oldest answers make room.

    Args:
        watchdog: cuts off what takes too long.
        most_bytes: of answers that were not read yet, about so many are kept.
    """

    def __init__(self, watchdog: Watchdog, most_bytes: int = _MOST_BYTES) -> None:
        self._watchdog = watchdog
        self._most = most_bytes
        self._changed = threading.Condition()  # Guards what follows.
        self._unread: dict[str, deque[_Unread]] = {}
        self._bytes: Counter[str] = Counter()
        self._arriving: deque[tuple[float, Callable[[], object]]] = deque()

    def receive(self, call: Call, raw: Iterator[bytes]) -> bytes:
        """Ask the peer for the message of the request, and wait for it.

        Raises:
            InvalidArgument: it sends none.
            Abandoned: it has left, or was cut off.
        """
        cut_off = partial(_cut_off, call, "did not send its request")
        if not call.tenant_id:
            return self.receive_unknown(cut_off, raw)
        with self._watchdog.limit(RECEIVE_S, cut_off):
            return _first(raw)

    def receive_unknown(self, cut_off: Callable[[], object], raw: Iterator[bytes]) -> bytes:
        """The same for a method that anybody may call: few at once, and where others wait, no
        longer than a message takes that comes with its call.

        Args:
            cut_off: ends the call.
            raw: the message.
        """
        with self._changed:
            while len(self._arriving) >= _MOST_UNKNOWN:
                since, oldest = self._arriving[0]
                seconds = since + _PROMPT_S - time.monotonic()
                if seconds > 0:
                    self._changed.wait(seconds)
                else:
                    self._arriving.popleft()
                    oldest()
            mine = (time.monotonic(), cut_off)
            self._arriving.append(mine)
        try:
            with self._watchdog.limit(RECEIVE_UNKNOWN_S, cut_off):
                return _first(raw)
        finally:
            with self._changed:
                if mine in self._arriving:
                    self._arriving.remove(mine)
                self._changed.notify_all()

    def give(self, call: Call, answer: Any, serialize: Callable[[Any], bytes] | None) -> bytes:
        """Return the bytes of a call's only answer; the call is cut off if they are not read."""
        raw: bytes = answer if serialize is None else serialize(answer)
        unread = _Unread(call, len(raw))
        with self._changed:
            self._make_room(unread)
            self._unread.setdefault(unread.tenant_id, deque()).append(unread)
            self._bytes[unread.tenant_id] += unread.bytes
        unread.limit = self._watchdog.watch(
            TAKE_S, partial(_cut_off, call, "does not read its answer")
        )
        if not call.edge.add_callback(partial(self._ended, unread)):
            self._ended(unread)
        return raw

    def give_all(
        self, call: Call, answers: Iterable[Any], serialize: Callable[[Any], bytes] | None
    ) -> Iterator[bytes]:
        """Yield the bytes of each answer of a stream. gRPC asks for one when the one before it has
        left; the stream is cut off if that takes too long."""
        cut_off = partial(_cut_off, call, "stopped reading")
        for answer in answers:
            raw: bytes = answer if serialize is None else serialize(answer)
            with self._watchdog.limit(TAKE_S, cut_off):
                yield raw

    def _make_room(self, unread: _Unread) -> None:
        """Wait a moment until there is room, and take that of the tenant's oldest answers."""
        until = time.monotonic() + _FRESH_S
        while not self._fits(unread) and (mine := self._unread.get(unread.tenant_id)):
            oldest = mine[0]
            seconds = min(until, oldest.since + _FRESH_S) - time.monotonic()
            if seconds > 0:
                self._changed.wait(seconds)
            else:
                self._forget(oldest)
                _cut_off(oldest.call, "does not read its answers, and others need their room")

    def _fits(self, unread: _Unread) -> bool:
        return self._bytes[unread.tenant_id] + unread.bytes <= self._most - self._bytes.total()

    def _ended(self, unread: _Unread) -> None:
        """The answer was read, or its call is over otherwise."""
        if unread.limit is not None:
            self._watchdog.forget(unread.limit)
        with self._changed:
            self._forget(unread)
            self._changed.notify_all()

    def _forget(self, unread: _Unread) -> None:
        mine = self._unread.get(unread.tenant_id)
        if not mine or unread not in mine:
            return
        self._bytes[unread.tenant_id] -= unread.bytes
        mine.remove(unread)
        if not mine:
            del self._unread[unread.tenant_id], self._bytes[unread.tenant_id]


class _Unread:
    """An answer that was given to gRPC and that its peer has not read yet."""

    __slots__ = ("bytes", "call", "limit", "since", "tenant_id")

    def __init__(self, call: Call, size: int) -> None:
        self.call = call
        self.bytes = size
        self.tenant_id = call.tenant_id
        self.since = time.monotonic()
        self.limit: Limit | None = None


def _first(raw: Iterator[bytes]) -> bytes:
    try:
        return next(raw)
    except StopIteration:
        raise InvalidArgument("the call carries no request: it takes exactly one message") from None
    except grpc.RpcError as error:
        # gRPC's state of the call holds it, and its traceback that state: a circle, in which the
        # call would live, with what has arrived, until the garbage is collected.
        error.__traceback__ = None
        raise Abandoned from None


def _cut_off(call: Call, what: str) -> None:
    _log.info(
        f"a peer {what}; the call was cut off",
        method=call.method.path, tenant=call.tenant_id, request_id=call.request_id, peer=call.peer,
    )  # fmt: skip
    call.cancel()
