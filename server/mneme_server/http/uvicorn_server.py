"""uvicorn, set up: which protocol, which loop, which bounds."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mneme_server.http.answer import ABORT
from mneme_server.http.app import Edge, EdgeOptions, quiet_libraries
from mneme_server.http.options import HttpOptions
from mneme_server.transport.entrance import Entrance

_HEAD_S = 10.0
"""How long the head of a request may take, from its first byte, or from the connection's start."""
_HEAD_BYTES = 64 * 1024
_KEEP_ALIVE_S = 60
_CONNECTIONS = 2_000
_GRACE_S = 2
_ALLOWED = (
    "authorization", "content-encoding", "content-type", "connect-protocol-version",
    "connect-timeout-ms", "grpc-timeout", "last-event-id", "mneme-at-least-as-fresh",
    "traceparent", "tracestate", "x-mneme-tenant", "x-request-id",
)  # fmt: skip
_EXPOSED = (
    "mneme-at-least-as-fresh", "mneme-consistency-token", "retry-after",
    "trailer-mneme-at-least-as-fresh", "trailer-mneme-consistency-token", "x-request-id",
)  # fmt: skip


def make_server(
    options: HttpOptions, entrance: Entrance, is_serving: Callable[[], bool]
) -> uvicorn.Server:
    """Return a server that has not begun."""
    app: Any = Edge(
        entrance,
        EdgeOptions(options.max_message_bytes, options.auth_required, options.origins),
        is_serving,
    )
    if options.origins:
        from starlette.middleware.cors import CORSMiddleware

        app = CORSMiddleware(
            app,
            allow_origins=options.origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=_ALLOWED,
            expose_headers=_EXPOSED,
        )
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        limit_concurrency=_CONNECTIONS,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        ssl_ca_certs=None if options.client_ca is None else str(options.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if options.client_ca is None else ssl.CERT_REQUIRED,
    )
    quiet_libraries()
    return uvicorn.Server(config)


class BoundedProtocol(HttpToolsProtocol):
    """A connection whose peer must say what it wants in time, and in few words."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._in_head = True
        self._waiting = self.loop.call_later(_HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._waiting.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is too much for a head."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # What belongs to the body was counted, too, in the part with which the head ended.
        if self._in_head and self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
                b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        super().on_message_begin()
        scope: Any = self.scope
        scope[ABORT] = self.transport.abort
        if not self._in_head:
            self._in_head = True
            self._head_bytes = 0
            self._waiting = self.loop.call_later(_HEAD_S, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Wait no more: a body has a time of its own."""
        self._in_head = False
        self._waiting.cancel()
        super().on_headers_complete()
