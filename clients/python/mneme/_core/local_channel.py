"""A channel to whichever server a folder has now, for synchronous code."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc

from mneme._core.local_folder import Record
from mneme._core.local_joining import (
    JOIN_S,
    SERVING,
    WATCH,
    WHOLE_SERVER,
    Calls,
    Membership,
    Method,
    Tries,
    options_of,
)
from mneme._core.time_left import TimeLeft
from mneme.errors import ClosedError


@dataclass(slots=True)
class _Joined:
    """A server that was joined; `gone` is set when it ends, whether by dying or by saying so."""

    record: Record
    channel: grpc.Channel
    gone: threading.Event


class LocalChannel(Calls, grpc.Channel):
    """Joins the folder's server, or starts it, when a call finds that there is none.

    May be used by many threads at once.

    Raises, from its calls:
        ConfigurationError, FailedPreconditionError, UnavailableError: as `LocalFolder.start`.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._lock = threading.Lock()
        self._joined: _Joined | None = None
        self._former: _Joined | None = None

    @property
    def address(self) -> str:
        """Where the server is, or was."""
        return self._joined.record.address if self._joined else ""

    def apart(self) -> LocalChannel:
        """A channel with a connection of its own to whichever server this one has joined."""
        return _Apart(self, self._membership)

    def join_when_made(self) -> None:
        """Join: who has a client has a server."""
        self.join(None)

    def join_when_entered(self) -> None:
        """Nothing: it was joined when the client was made."""

    def join(self, time_left: float | None) -> _Joined:
        """The server, joined; it runs at least until this process has gone.

        Args:
            time_left: seconds that may be spent on that; None: as many as a start may take.
        """
        self._membership.check()
        joined = self._joined
        if joined is not None and not joined.gone.is_set():
            return joined
        tries = Tries(self._membership.folder, time_left)
        if not self._lock.acquire(timeout=tries.left()):
            raise self._membership.folder.silent(tries.limit)
        try:
            self._membership.check()
            joined = self._joined
            if joined is None or joined.gone.is_set():
                joined = self._join(tries)
            return joined
        finally:
            self._lock.release()

    def _join(self, tries: Tries) -> _Joined:
        folder = self._membership.folder
        while True:
            record = folder.record()
            joined = self._try(record, min(JOIN_S, tries.left())) if record else None
            if joined is not None:
                break
            folder.start(tries.left())
            if record is not None and record == folder.record():
                time.sleep(tries.pause())
        if self._former is not None:
            # Not the one that was just lost: other threads are about to hear that it was.
            self._former.channel.close()
        self._former, self._joined = self._joined, joined
        return joined

    def _try(self, record: Record, timeout: float) -> _Joined | None:
        channel = self._connect(record)
        watch: Any = Method("unary_stream", WATCH, (), {}).on(channel)(WHOLE_SERVER)
        giving_up = threading.Timer(timeout, watch.cancel)
        giving_up.start()
        try:
            if next(watch) == SERVING:
                gone = threading.Event()
                threading.Thread(
                    target=_stay, args=(watch, gone), name="mneme-local", daemon=True
                ).start()
                return _Joined(record, channel, gone)
        except (grpc.RpcError, StopIteration):
            pass
        finally:
            giving_up.cancel()
        channel.close()
        return None

    def _connect(self, record: Record) -> grpc.Channel:
        return grpc.secure_channel(
            record.address, self._membership.credentials(record), self._membership.options
        )

    def close(self) -> None:
        """Leave the server."""
        with self._lock:
            self._membership.closed = True
            for joined in (self._former, self._joined):
                if joined is not None:
                    joined.channel.close()

    def subscribe(self, callback: Callable[..., None], try_to_connect: bool | None = False) -> None:
        """As every channel does, of the server that was joined."""
        if self._joined is not None:
            self._joined.channel.subscribe(callback, bool(try_to_connect))

    def unsubscribe(self, callback: Callable[..., None]) -> None:
        """As every channel does."""
        if self._joined is not None:
            self._joined.channel.unsubscribe(callback)

    def calls(self, method: Method) -> Any:
        """What calls a method on the server of the moment."""
        return _Call(self, method)

    def __enter__(self) -> LocalChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Apart(LocalChannel):
    """Another connection to a server that was joined, for one call; it takes no part of its own.

    Args:
        joining: joins the servers.
        membership: what it joins them with.
    """

    def __init__(self, joining: LocalChannel, membership: Membership) -> None:
        super().__init__(membership)
        self._joining = joining
        self._closed = False

    def join(self, time_left: float | None) -> _Joined:
        """The server, joined by the other channel, with this one's own connection."""
        there = self._joining.join(time_left)
        with self._lock:
            if self._closed:
                raise ClosedError
            self._joined = _Joined(there.record, self._connect(there.record), there.gone)
            return self._joined

    def close(self) -> None:
        """Close the connection; the other channel still takes part."""
        with self._lock:
            self._closed = True
            if self._joined is not None:
                self._joined.channel.close()


def _stay(watch: Any, gone: threading.Event) -> None:
    """Read on: gRPC does not tell that a stream has ended before all of it was read."""
    try:
        while next(watch) == SERVING:
            pass
    except (grpc.RpcError, StopIteration):
        pass
    finally:
        gone.set()


class _Call:
    """A method, called on the server of the moment, with its key.

    Args:
        channel: knows the server.
        method: what is called.
    """

    def __init__(self, channel: LocalChannel, method: Method) -> None:
        self._channel = channel
        self._method = method

    def __call__(self, request: Any, *, timeout: float | None = None, **options: Any) -> Any:
        return self._made(_called, request, timeout, options)

    def with_call(self, request: Any, *, timeout: float | None = None, **options: Any) -> Any:
        """The answer with gRPC's own call, where a single answer comes."""
        return self._made(_called_with_call, request, timeout, options)

    def _made(
        self, make: Callable[..., Any], request: Any, timeout: float | None, options: dict[str, Any]
    ) -> Any:
        left = TimeLeft(timeout)
        joined = self._channel.join(left())
        given = options_of(options, joined.record, left())
        return make(self._method.on(joined.channel), request, given)


def _called(method: Any, request: Any, options: dict[str, Any]) -> Any:
    return method(request, **options)


def _called_with_call(method: Any, request: Any, options: dict[str, Any]) -> Any:
    return method.with_call(request, **options)
