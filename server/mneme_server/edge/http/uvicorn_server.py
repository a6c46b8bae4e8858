"""uvicorn, set up: which protocol, which loop, which bounds."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.middleware.cors import CORSMiddleware

from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.http.app import HttpApp
from mneme_server.edge.http.connection import HEAD_S, BoundedProtocol, Bounds
from mneme_server.edge.http.fair_shares import OpenConnections, Shares
from mneme_server.edge.http.options import HttpOptions

_KEEP_ALIVE_S = 60
_CONNECTIONS = 2_000
_UNREAD = 16
"""Answers of the largest size that may wait to be read."""
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
    largest = options.max_message_bytes
    app: Any = HttpApp(entrance, options, is_serving)
    if options.origins:
        app = CORSMiddleware(
            app,
            allow_origins=options.origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=_ALLOWED,
            expose_headers=_EXPOSED,
        )
    bounds = Bounds(
        OpenConnections(_CONNECTIONS, options.proxies), Shares(_UNREAD * largest), largest
    )
    protocol: Any = partial(BoundedProtocol, bounds=bounds)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        ssl_ca_certs=None if options.client_ca is None else str(options.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if options.client_ca is None else ssl.CERT_REQUIRED,
    )
    # Below that is what any peer can cause.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return _Server(config)


class _Server(uvicorn.Server):
    """uvicorn's, which waits a minute for the handshake of TLS."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        config, loop = self.config, asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]
                config=config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )
            return made

        self.servers = [
            await loop.create_server(
                protocol,
                sock=listening,
                ssl=config.ssl,
                ssl_handshake_timeout=HEAD_S if config.ssl else None,
                backlog=config.backlog,
            )
            for listening in sockets or ()
        ]
        self.started = True
