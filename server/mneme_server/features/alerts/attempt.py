"""One attempt to reach somebody: it ends when its time is up, whatever it waits for."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType


class CalledOff:
    """Says that attempts end before their time, and why. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # Guards what follows.
        self._why = ""
        self._going: list[SendAttempt] = []

    @property
    def why(self) -> str:
        """Why they end; empty: they do not."""
        return self._why

    def say(self, why: str) -> None:
        """End the attempts that go on, and those that begin from now on."""
        with self._lock:
            self._why = why
            going = list(self._going)
        for attempt in going:
            attempt.cut()

    def begins(self, attempt: SendAttempt) -> None:
        """Take note of an attempt that begins."""
        with self._lock:
            self._going.append(attempt)
            why = self._why
        if why:
            attempt.cut()

    def ends(self, attempt: SendAttempt) -> None:
        """Take note of an attempt that has ended."""
        with self._lock:
            self._going.remove(attempt)


class SendAttempt:
    """The time of an attempt, by the clock: of names that are looked up, of connections, of
    handshakes, and of an answer that comes a byte at a time.

    A time limit of a socket's is one of each wait, and whoever answers in drops is never late by
    it. So the connection is broken off from another thread, by a handle of the attempt's own: what
    uses the connection may wrap it, or let go of it, meanwhile.

    Args:
        seconds: how long it may take, all of it.
        off: may end it before.
    """

    def __init__(self, seconds: float, off: CalledOff | None = None) -> None:
        self.seconds = seconds
        self._off = off or CalledOff()
        self._until_s = time.monotonic() + seconds
        self._lock = threading.Lock()  # Guards what follows.
        self._handles: list[socket.socket] = []
        self._is_up = False
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True

    def __enter__(self) -> SendAttempt:
        """Begin."""
        self._timer.start()
        self._off.begins(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and close what is open."""
        self._timer.cancel()
        self._off.ends(self)
        with self._lock:
            handles, self._handles = self._handles, []
        for handle in handles:
            handle.close()

    @property
    def is_up(self) -> bool:
        """Whether its time is up."""
        return self._is_up or time.monotonic() >= self._until_s

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: none.
        """
        left = self._until_s - time.monotonic()
        if self._is_up or left <= 0:
            raise TimeoutError("no time is left")
        return left

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a name.

        Raises:
            OSError: it has none.
            TimeoutError: nobody says so in time. Who looks it up is left behind.
        """
        found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

        def look() -> None:
            try:
                answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.put(list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers)))
            except UnicodeError:
                found.put(socket.gaierror(socket.EAI_NONAME, "it is no name"))
            except OSError as error:
                found.put(error)

        threading.Thread(target=look, name="alert-names", daemon=True).start()
        try:
            answer = found.get(timeout=self.left())
        except queue.Empty:
            raise TimeoutError("the name was not looked up in time") from None
        if isinstance(answer, OSError):
            raise answer
        return answer

    def connected(self, addresses: Sequence[str], port: int) -> socket.socket:
        """Return a connection to the first address that takes it.

        Raises:
            OSError: none does, or not in time.
        """
        for at, address in enumerate(addresses, 1):
            waiting = 1 + len(addresses) - at
            try:
                return self._held(socket.create_connection((address, port), self.left() / waiting))
            except OSError:
                if at == len(addresses) or self.is_up:
                    raise
        raise OSError("the name has no address")

    def _held(self, connection: socket.socket) -> socket.socket:
        try:
            connection.settimeout(self.left())
            with self._lock:
                if self._is_up:
                    raise TimeoutError("no time is left")
                self._handles.append(connection.dup())
        except BaseException:
            connection.close()
            raise
        return connection

    def cut(self) -> None:
        """Have no time be left: nothing is sent any more."""
        with self._lock:
            self._is_up = True
            for handle in self._handles:
                try:
                    handle.shutdown(socket.SHUT_RDWR)
                except OSError:  # The other side was faster.
                    continue


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """`error`: why it failed; empty if it did not. `final`: trying again makes no sense."""

    error: str = ""
    final: bool = False
