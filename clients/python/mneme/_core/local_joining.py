"""What joining a folder's server has in common for both clients.

To take part is to watch the server's health: it runs for as long as anybody does. The channel
trusts one certificate, which is the record's, so that each of its connections, also one that it
makes anew, begins with the proof that this is the folder's server. The key follows after that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import grpc

from mneme._core.connection import APART, Connection, connection_of
from mneme._core.local_folder import HOST, LocalFolder, Record
from mneme.errors import ClosedError, ConfigurationError

WATCH = "/grpc.health.v1.Health/Watch"
WHOLE_SERVER = b""
"""A HealthCheckRequest that names no service; the base install has no health messages."""
SERVING = b"\x08\x01"
"""The HealthCheckResponse of a server that takes calls."""

JOIN_S = 5.0
"""How long a server may take to show who it is."""
START_S = 60.0
"""How long a server may take to start; the first start may prepare the model."""
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class Tries:
    """The tries to join: how long until the next one, and when to give up.

    Args:
        folder: the folder, for words.
        time_left: seconds that the call has; None: no limit of its own.
    """

    def __init__(self, folder: LocalFolder, time_left: float | None) -> None:
        self._folder = folder
        self.limit = START_S if time_left is None else min(START_S, time_left)
        self._end = time.monotonic() + self.limit
        self._pause = _FIRST_PAUSE_S

    def left(self) -> float:
        """Seconds that are left.

        Raises:
            UnavailableError: none.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._folder.silent(self.limit)
        return left

    def pause(self) -> float:
        """Seconds until the next try, longer each time."""
        pause = min(self._pause, self.left())
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        return pause


class Membership:
    """What a participant needs beside its channel.

    Args:
        folder: the folder.
        options: the channels' options.
    """

    def __init__(self, folder: LocalFolder, options: Iterable[tuple[str, Any]]) -> None:
        self.folder = folder
        # A call that was sent as the server died waits for whoever has its port now.
        given_up = ("grpc.min_reconnect_backoff_ms", int(1000 * JOIN_S))
        self.options = (*options, ("grpc.enable_http_proxy", 0), given_up, *APART)
        self.closed = False
        self._process = os.getpid()

    def credentials(self, record: Record) -> grpc.ChannelCredentials:
        """Trust in this server and no other."""
        return grpc.ssl_channel_credentials(record.certificate.encode())

    def check(self) -> None:
        """Refuse to go on where that cannot work.

        Raises:
            ClosedError: the client is closed.
            ConfigurationError: the process was forked since the client was made.
        """
        if self.closed:
            raise ClosedError
        if os.getpid() != self._process:
            raise ConfigurationError(
                f"the client of {self.folder.path} was made before this process was forked from"
                " its parent: make one of its own here"
            )


def connection_and_membership(
    folder: str | os.PathLike[str],
    timeout: float | None,
    retries: int | None,
    server: str | Sequence[str] | None,
) -> tuple[Connection, Membership]:
    """What a client of a folder is made of.

    Args:
        folder: the folder.
        timeout: seconds for a call; None: no limit.
        retries: how often a call may be sent again; None: as often as its timeout allows.
        server: the server's command, or the command and its arguments; None: the usual one.
    """
    place = LocalFolder(folder, server)
    connection = connection_of(
        address=HOST,
        api_key="",
        tls=False,
        insecure=False,
        timeout=timeout,
        retries=0,  # gRPC itself sends nothing again: by then the server may be another one.
        wait_for_ready=False,
        tenant="",  # There is no balancer.
        options=(),
    )
    membership = Membership(place, connection.options)
    return replace(connection, target=str(place.path), retries=retries), membership


class Calls:
    """The four kinds of calls of a channel, each to whichever server is joined when it begins."""

    def calls(self, method: Method) -> Any:
        """What calls a method; a channel says how."""
        raise NotImplementedError

    def unary_unary(self, method: str, *coders: Any, **more: Any) -> Any:
        """One request, one answer."""
        return self.calls(Method("unary_unary", method, coders, more))

    def unary_stream(self, method: str, *coders: Any, **more: Any) -> Any:
        """One request, many answers."""
        return self.calls(Method("unary_stream", method, coders, more))

    def stream_unary(self, method: str, *coders: Any, **more: Any) -> Any:
        """Many requests, one answer."""
        return self.calls(Method("stream_unary", method, coders, more))

    def stream_stream(self, method: str, *coders: Any, **more: Any) -> Any:
        """Many requests, many answers."""
        return self.calls(Method("stream_stream", method, coders, more))


class Method:
    """A method of the API, for whichever channel is the present one.

    Args:
        kind: the name of the channel's method that makes such calls.
        path: the method's path.
        coders: how messages are written and read.
        more: the same by name.
    """

    def __init__(
        self, kind: str, path: str, coders: tuple[Any, ...], more: Mapping[str, Any]
    ) -> None:
        self.path = path
        self.kind = kind
        self._coders = coders
        # Registered methods belong to one channel.
        self._more = {k: v for k, v in more.items() if k != "_registered_method"}
        self._made: tuple[Any, Any] = (None, None)

    def on(self, channel: Any) -> Any:
        """What calls it there."""
        of, made = self._made
        if of is not channel:
            made = getattr(channel, self.kind)(self.path, *self._coders, **self._more)
            self._made = channel, made
        return made


def options_of(given: Mapping[str, Any], record: Record, timeout: float | None) -> dict[str, Any]:
    """The options of a call, with the key and with the time that is left."""
    metadata = (*(given.get("metadata") or ()), *record.metadata)
    return {**given, "timeout": timeout, "metadata": metadata}
