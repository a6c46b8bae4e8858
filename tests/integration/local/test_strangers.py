"""What a stranger gets who listens where a folder's server listened: no key."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import mneme
import pytest
from mneme_server.edge.local.certificate import new_identity
from support.folders import kill_server, record_of

pytestmark = pytest.mark.slow


class _Everything(grpc.GenericRpcHandler):
    """Takes every call for a health watch, and remembers what came with it."""

    def __init__(self) -> None:
        self.metadata: list[str] = []

    def service(self, details: Any) -> Any:
        self.metadata += [f"{key}: {value}" for key, value in details.invocation_metadata]
        return grpc.unary_stream_rpc_method_handler(lambda _request, _context: iter([b"\x08\x01"]))


@contextmanager
def _grpc_stranger(port: int, *, tls: bool) -> Iterator[_Everything]:
    heard = _Everything()
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((heard,))
    if tls:
        own = new_identity("127.0.0.1")
        credentials = grpc.ssl_server_credentials([(own.key, own.certificate)])
        assert server.add_secure_port(f"127.0.0.1:{port}", credentials) == port
    else:
        assert server.add_insecure_port(f"127.0.0.1:{port}") == port
    server.start()
    try:
        yield heard
    finally:
        server.stop(None)


@contextmanager
def _silent_stranger(port: int) -> Iterator[bytearray]:
    """Takes connections and never answers."""
    heard = bytearray()
    listening = socket.create_server(("127.0.0.1", port))
    taken: list[socket.socket] = []

    def listen() -> None:
        try:
            while True:
                connection, _ = listening.accept()
                taken.append(connection)
                threading.Thread(target=read, args=(connection,), daemon=True).start()
        except OSError:
            return

    def read(connection: socket.socket) -> None:
        try:
            while data := connection.recv(65536):
                heard.extend(data)
        except OSError:
            return

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield heard
    finally:
        listening.close()
        for connection in taken:
            connection.close()


def test_a_call_that_was_sent_before_the_death_was_noticed_gives_a_silent_stranger_up(
    folder: Path,
) -> None:
    with mneme.local(folder) as memory:
        memory.list_events()
        kill_server(folder)
        port = int(record_of(folder)["address"].rpartition(":")[2])
        lost = memory._channel._joined.channel  # type: ignore[attr-defined]
        with _silent_stranger(port), pytest.raises(grpc.RpcError) as failed:
            lost.unary_unary("/mneme.v1.EventService/ListEvents")(b"", timeout=18.0)
        assert failed.value.code() == grpc.StatusCode.UNAVAILABLE  # So it is sent to the next one.


@pytest.mark.parametrize("kind", ["plaintext", "tls", "silent"])
def test_a_stranger_on_the_port_of_a_dead_server_is_not_told_the_key(
    folder: Path, kind: str
) -> None:
    with mneme.local(folder) as memory:
        memory.record_events([{"session_id": "s1", "event_type": "message", "text": "ours"}])
        kill_server(folder)
        former = record_of(folder)
        port = int(former["address"].rpartition(":")[2])
        stranger = (
            _silent_stranger(port) if kind == "silent" else _grpc_stranger(port, tls=kind == "tls")
        )
        with stranger as heard:
            assert [event.text for event in memory.iter_events()] == ["ours"]
            assert memory.address != former["address"]
        told = bytes(heard) if isinstance(heard, bytearray) else "".join(heard.metadata).encode()
        assert former["key"].encode() not in told
        assert b"authorization" not in told
