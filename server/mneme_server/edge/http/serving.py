"""Serves the HTTP edge: its port, its thread, and its bounds on slow peers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import structlog

from mneme_server.common.address import ListenError, join_host_port, split_host_port
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.http.options import HttpOptions

_log = structlog.get_logger(__name__)

SETTING = "MNEME_HTTP_LISTEN"
_BACKLOG = 1024
_GRACE_S = 2
"""How long answers that are ready may take to be sent when the server ends."""


class HttpServer:
    """The HTTP edge of a server: `bind` it, `start` it, and `stop` it once.

    What it needs is imported by its own thread, so that nobody waits for it: the port takes
    connections from `bind` on.

    Args:
        options: how to serve.
        entrance: where calls are served.
        is_serving: tells whether the server takes calls.
    """

    def __init__(
        self, options: HttpOptions, entrance: Entrance, is_serving: Callable[[], bool]
    ) -> None:
        self._options = options
        self._entrance = entrance
        self._is_serving = is_serving
        self._stopping = threading.Event()
        self._listening: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._server: Any = None

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    def bind(self) -> str:
        """Have the port; return the address with its real port, "" if the usual port is taken.

        Raises:
            ListenError: the address, which somebody chose, cannot be had.
        """
        listen = self._options.listen
        try:
            listening = _bind(listen)
        except OSError as error:
            why = error.strerror or str(error)
            if self._options.by_default:
                _log.warning(
                    "gRPC serves, but HTTP does not: its usual port cannot be had; choose another"
                    " with MNEME_HTTP_LISTEN, or turn HTTP off with an empty one",
                    listen=listen, why=why,
                )  # fmt: skip
                return ""
            raise ListenError(SETTING, listen, why) from error
        self._listening = listening
        host, port = listening.getsockname()[:2]
        scheme = "https" if self._options.certificate else "http"
        return f"{scheme}://{join_host_port(split_host_port(listen)[0] or host, port)}"

    def start(self) -> None:
        """Take calls, if there is a port."""
        if self._listening is not None:
            self._thread = threading.Thread(
                target=self._run, args=(self._listening,), name="http", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Send what is ready to be sent, and close the connections and the port."""
        self._stopping.set()
        if self._thread is None and self._listening is not None:
            self._listening.close()
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_GRACE_S + 1)

    def _run(self, listening: socket.socket) -> None:
        try:
            from mneme_server.edge.http.uvicorn_server import make_server

            self._server = make_server(self._options, self._entrance, self._is_serving)
            if not self._stopping.is_set():
                self._server.run(sockets=[listening])
        except BaseException as error:
            _log.exception("HTTP is not served any more", error=str(error))
        finally:
            listening.close()


def _bind(listen: str) -> socket.socket:
    host, port = split_host_port(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio looks for this protocol before it turns Nagle's algorithm off, which would hold the
    # body of an answer back for 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # A port whose connections still linger can be had; one that somebody listens on cannot.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_BACKLOG)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound
