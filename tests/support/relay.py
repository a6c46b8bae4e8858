"""A relay of TCP connections, which stops passing on what is said on those that it has."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_AT_ONCE = 65_536


class Relay:
    """Passes on what is said on connections to a port of its own.

    Args:
        target: the Unix socket that they are passed on to.

    Attributes:
        port: the port, on loopback.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        self._passing = threading.Event()
        self._passing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        """From now on what is said on the connections that are open is taken, and passed on to
        nobody; nobody hears of it. New ones work."""
        stopped, self._passing = self._passing, threading.Event()
        self._passing.set()
        stopped.clear()

    def close(self) -> None:
        """End all connections."""
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                called = socket.socket(socket.AF_UNIX)
                called.connect(str(self._target))
                self._open += [caller, called]
                for one, other in ((caller, called), (called, caller)):
                    threading.Thread(
                        target=self._pass_on, args=(one, other, self._passing), daemon=True
                    ).start()

    def _pass_on(self, said: socket.socket, heard: socket.socket, passing: threading.Event) -> None:
        with suppress(OSError):
            while data := said.recv(_AT_ONCE):
                if not passing.is_set():
                    continue
                heard.sendall(data)
            if passing.is_set():
                heard.shutdown(socket.SHUT_WR)


@contextmanager
def relayed(target: Path) -> Iterator[Relay]:
    """Lend a relay to the block."""
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
