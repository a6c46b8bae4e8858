"""A server that refuses streams, as RFC 9113, section 8.7, has it: it has not looked at them."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import h2.config
import h2.connection
import h2.errors
import h2.events
from google.protobuf.message import Message


class Refusing:
    """Refuses the first streams of a connection, and answers each further one alike.

    Args:
        refused: how many it refuses.
        answer: what it answers.
    """

    def __init__(self, refused: int, answer: Message) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._left = refused
        body = answer.SerializeToString()
        self._body = struct.pack(">BI", 0, len(body)) + body
        self.opened = 0

    def serve(self) -> None:
        """Serve the connections, one after another, until it is closed."""
        with suppress(OSError):
            while True:
                peer, _ = self._listening.accept()
                with peer, suppress(OSError):
                    self._talk(peer)

    def close(self) -> None:
        """Serve no more connections."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _talk(self, peer: socket.socket) -> None:
        talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        talk.initiate_connection()
        peer.sendall(talk.data_to_send())
        while data := peer.recv(65_536):
            for event in talk.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._answer(talk, event.stream_id)
            peer.sendall(talk.data_to_send())

    def _answer(self, talk: h2.connection.H2Connection, stream: int) -> None:
        self.opened += 1
        if self._left:
            self._left -= 1
            talk.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        talk.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        talk.send_data(stream, self._body)
        talk.send_headers(stream, [("grpc-status", "0")], end_stream=True)


@contextmanager
def refusing(streams: int, answer: Message) -> Iterator[Refusing]:
    """Serve for the block."""
    server = Refusing(streams, answer)
    thread = threading.Thread(target=server.serve, name="refusing", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(10)
