"""Streamable HTTP: one adapter for many callers, each with its own key."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme_mcp.server import MnemeServer

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_KEEP_ALIVE_S = 60
"""Longer than hosts keep a connection that is quiet, 5 s with httpx: whoever closes it first should
be the one who would use it next, or a call meets its end."""


class CannotListen(ValueError):
    """The address cannot be listened on, or not safely."""


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, [IPV6]:PORT or PORT, which means loopback.

    Raises:
        CannotListen: it is none of them.
    """
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise CannotListen(f"{text!r} is not an address: give HOST:PORT, e.g. 127.0.0.1:8765")
    return host, int(port)


def security_of(
    host: str, allowed_hosts: Sequence[str], allowed_origins: Sequence[str]
) -> TransportSecuritySettings:
    """Which Host and Origin headers are answered: a web page must not reach a local adapter.

    Raises:
        CannotListen: the host is not loopback, and nobody said by which names it is called.
    """
    if host not in _LOOPBACK and not allowed_hosts:
        raise CannotListen(
            f"{host} can be reached from other machines: say by which names callers may address "
            "the adapter, e.g. --allowed-host memory.example.com, and put TLS in front of it, "
            "because callers send API keys"
        )
    local = ["127.0.0.1:*", "localhost:*", "[::1]:*"]
    names = [*(local if host in _LOOPBACK else ()), *allowed_hosts]
    named = [*names, *(f"{name}:*" for name in allowed_hosts if ":" not in name)]
    origins = [f"http://{name}" for name in local] if host in _LOOPBACK else []
    return TransportSecuritySettings(
        allowed_hosts=named, allowed_origins=[*origins, *allowed_origins]
    )


def with_one_key(app: ASGIApp) -> ASGIApp:
    """Refuse requests with several keys: a proxy before it may have looked at another one."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        keys = sum(name == b"authorization" for name, _ in scope.get("headers", ()))
        called = app if keys <= 1 else PlainTextResponse("send one Authorization header", 400)
        await called(scope, receive, send)

    return checked


async def serve(
    server: MnemeServer,
    address: tuple[str, int],
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> None:
    """Serve until told to stop; print where, once it listens.

    Requests stand alone: nothing is kept between them, so an adapter can be restarted, or run
    several times behind one name, without its callers noticing.

    Raises:
        CannotListen: the address is taken, or not allowed.
    """
    host, port = address
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        transport_security=security_of(host, allowed_hosts, allowed_origins),
        host=host,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listening.listen(128)
    name = f"[{host}]" if ":" in host else host
    print(f"serving on http://{name}:{listening.getsockname()[1]}{PATH}", flush=True)
    config = uvicorn.Config(
        with_one_key(app),
        log_level="warning",
        timeout_graceful_shutdown=5,
        timeout_keep_alive=_KEEP_ALIVE_S,
    )
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await server.aclose()
