"""A connection whose peer must say what it wants in time and in few words, and read its answers."""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mneme_server.edge.http.fair_shares import OpenConnections, Shares
from mneme_server.edge.http.request import CONNECTION

HEAD_S = 10.0
"""How long the head of a request may take, from its first byte, or from the connection's start."""
_HEAD_BYTES = 64 * 1024
_HEADERS = 128
_FRAME_BYTES = 64 * 1024
"""How much may come in a row that is of no body: what is around its chunks, and trailers."""
_PIPELINED = 16
"""How many requests may wait for the answer to the one before them."""
_REST_S = 60.0
"""How long the rest of a body may take to come whose request was answered before it did."""
_READ_S = 10
_READ_BYTES = 64 * 1024
"""So much of an answer, or what there is, a peer must take in so many seconds."""
_LOOK_S = 1.0

_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_MANY = b"503 Service Unavailable"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What all connections share.

    Args:
        connections: counts them.
        unread: counts what tenants have not read of their answers, in bytes.
        largest: the largest body, in bytes.
    """

    connections: OpenConnections
    unread: Shares
    largest: int


class _RequestRefused(Exception):
    """What a parser's callback raises to have no more parsed."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *given: Any, bounds: Bounds, **named: Any) -> None:
        super().__init__(*given, **named)
        self._bounds = bounds
        self._entered = False
        self._refusal = b""
        # Of the request that is coming.
        self._in_head = True
        self._is_complete = False
        self._head_bytes = self._body_bytes = self._frame_bytes = self._rest_bytes = 0
        self._requests = 0
        self._waiting: TimerHandle | None = None
        # Of answers.
        self._tenant = ""
        self._written = self._unread = 0
        self._taken_before = self._looks = 0
        self._looking: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(_Counting(transport, self._wrote))  # type: ignore[arg-type]
        self._entered = self._bounds.connections.enter(self._host)
        if self._entered:
            self._wait(HEAD_S)
        else:
            self._refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more, and let go of what was held."""
        self._wait(None)
        if self._looking is not None:
            self._looking.cancel()
        if self._entered:
            self._bounds.connections.leave(self._host)
        self._hold(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is too much of what is no body."""
        if self.transport.is_closing():
            return
        before = (self._requests, self._body_bytes, self._in_head)
        if self._in_head:
            self._head_bytes += len(data)
        if self._is_answered and not self._is_complete:
            self._rest_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if before == (self._requests, self._body_bytes, False) and not self._in_head:
            self._frame_bytes += len(data)
        elif not self._in_head:
            self._frame_bytes = 0
        # What belongs to the body was counted, too, in the part with which the head ended.
        if (self._in_head and self._head_bytes > _HEAD_BYTES) or self._frame_bytes > _FRAME_BYTES:
            self._refuse(_TOO_LARGE)
        elif self._rest_bytes > self._bounds.largest:
            self.transport.abort()
        elif self._is_idle and self.timeout_keep_alive_task is None:
            self._begin_head(len(data))

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        super().on_message_begin()
        scope: Any = self.scope
        scope[CONNECTION] = self
        self._requests += 1
        if not self._in_head:
            self._begin_head(0)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one of a head; what follows a body is not kept."""
        if not self._in_head:
            return
        if len(self.headers) >= _HEADERS:
            self._refusal = _TOO_LARGE
            raise _RequestRefused
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Wait no more: a body has a time of its own."""
        self._in_head = self._is_complete = False
        self._body_bytes = self._frame_bytes = self._rest_bytes = 0
        self._wait(None)
        size = sum(len(name) + len(value) for name, value in self.headers) + len(self.url)
        if size > _HEAD_BYTES or len(self.pipeline) >= _PIPELINED:
            self._refusal = _TOO_LARGE
            raise _RequestRefused
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take note that all of a request is there."""
        self._is_complete = True
        if self._is_answered:
            self._wait(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of a request that was answered before all of it was there."""
        super().on_response_complete()
        if not self._is_complete and not self.pipeline and not self.transport.is_closing():
            self._wait(_REST_S)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or is one that was refused while it was read."""
        if self._refusal:
            self._refuse(self._refusal)
        elif self._is_answering:
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing was asked for long."""
        if self.transport.get_write_buffer_size():  # Closing would wait until it is read.
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def resume_writing(self) -> None:
        """Take note of what was read."""
        super().resume_writing()
        self._hold(self.transport.get_write_buffer_size())

    # What a request's own code asks of its connection.

    def abort(self) -> None:
        """Cut the connection."""
        self.transport.abort()

    def is_of(self, tenant_id: str) -> None:
        """Say whose the request is, and its answer."""
        held = self._unread
        self._hold(0)
        self._tenant = tenant_id
        self._hold(held)

    def has_read(self) -> bool:
        """Tell whether this tenant reads its answers, so that there is room for another: one of the
        largest there always is. Any thread may ask."""
        unread = self._bounds.unread
        return unread.held(self._tenant) <= max(unread.left, self._bounds.largest)

    @property
    def _host(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    @property
    def _is_answering(self) -> bool:
        started = self.cycle is not None and self.cycle.response_started
        return bool(self.pipeline) or (started and not self.cycle.response_complete)

    @property
    def _is_idle(self) -> bool:
        return self._is_answered and self._is_complete and not self._in_head and not self.pipeline

    def _begin_head(self, said: int) -> None:
        self._in_head = True
        self._head_bytes = said
        self._wait(HEAD_S)

    def _wait(self, seconds: float | None) -> None:
        """Wait for the peer so long, and cut the connection then; None: no more."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = (
            None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
        )

    def _refuse(self, why: bytes) -> None:
        """Say why no more is taken, where no answer is under way, and end the connection."""
        if self._is_answering:
            self.transport.abort()
            return
        self.transport.write(
            b"HTTP/1.1 " + why + b"\r\ncontent-length: 0\r\nretry-after: 1\r\n"
            b"connection: close\r\n\r\n"
        )
        self.transport.close()

    def _wrote(self, size: int) -> None:
        self._written += size
        unsent = self.transport.get_write_buffer_size()
        self._hold(unsent)
        if unsent and self._looking is None:
            self._taken_before, self._looks = self._written - unsent, 0
            self._looking = self.loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        """Look whether the peer reads."""
        self._looking = None
        unsent = self.transport.get_write_buffer_size()
        self._hold(unsent)
        if not unsent:
            return
        self._looks += 1
        if self._looks >= _READ_S:
            taken = self._written - unsent
            if taken - self._taken_before < _READ_BYTES:
                _log.info(
                    "the peer of an answer stopped reading; its connection was cut off",
                    tenant=self._tenant, peer=self._host, unread_bytes=unsent,
                )  # fmt: skip
                self.transport.abort()
                return
            self._taken_before, self._looks = taken, 0
        self._looking = self.loop.call_later(_LOOK_S, self._look)

    def _hold(self, unread: int) -> None:
        if unread != self._unread:
            self._bounds.unread.change(self._tenant, unread - self._unread)
            self._unread = unread


class _Counting:
    """A transport that tells how much is written."""

    def __init__(self, transport: asyncio.Transport, wrote: Callable[[int], None]) -> None:
        self._transport = transport
        self._wrote = wrote

    def write(self, data: bytes) -> None:
        """Write it."""
        self._transport.write(data)
        self._wrote(len(data))

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's."""
        return getattr(self._transport, name)
