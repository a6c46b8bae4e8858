"""A memory in a folder, without a server to start: `mneme.local` and `mneme.local_async`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mneme._core.connection import Connection, connection_of
from mneme._core.local_aio_channel import AsyncLocalChannel
from mneme._core.local_channel import LocalChannel
from mneme._core.local_folder import HOST, LocalFolder
from mneme._core.local_joining import Membership
from mneme._generated.services import AsyncServices, SyncServices
from mneme.aio import AsyncMnemeClient
from mneme.client import MnemeClient


def local(
    folder: str | os.PathLike[str],
    *,
    timeout: float | None = 30.0,
    retries: int | None = None,
    server: str | Sequence[str] | None = None,
) -> MnemeClient:
    """A client of the memory in a folder, whose server starts and ends by itself.

        with mneme.local("./memory") as memory:
            memory.record_events(
                [{"session_id": "s1", "event_type": "message", "text": "the registry moved"}]
            )

    The first process that uses the folder starts its server, others join it: agents of one user on
    one machine share the memory. The server listens on loopback, with a key of its own that lies
    in the folder for this user alone, writes to `server.log` there, and ends a few seconds after
    its last participant has gone; if it dies, the next call starts it again. Everything else is
    as with `MnemeClient`.

    Args:
        folder: where the memory lies; made when missing. Not on a network file system.
        timeout: seconds for a call, a start of the server included; None: no limit.
        retries: how often a call may be sent again; None: as often as its timeout allows.
        server: the server's command, or the command and its arguments; default MNEME_SERVER, else
            the server of this Python, else `mneme-server` on the PATH. Its settings are the
            environment's, of the process that starts it.

    Raises:
        ConfigurationError: there is no server to start, or its settings are wrong.
        FailedPreconditionError: it cannot serve the folder; the message is its own.
        UnavailableError: it does not come up.
    """
    return _LocalClient(folder, timeout, retries, server)


def local_async(
    folder: str | os.PathLike[str],
    *,
    timeout: float | None = 30.0,
    retries: int | None = None,
    server: str | Sequence[str] | None = None,
) -> AsyncMnemeClient:
    """`local` for asyncio: the server is joined by `async with`, or else by the first call.

    async with mneme.local_async("./memory") as memory:
        answer = await memory.recall("where is the registry")
    """
    return _AsyncLocalClient(folder, timeout, retries, server)


class _LocalClient(MnemeClient):
    def __init__(
        self,
        folder: str | os.PathLike[str],
        timeout: float | None,
        retries: int | None,
        server: str | Sequence[str] | None,
    ) -> None:
        connection, membership = _parts(folder, timeout, retries, server)
        self._local = LocalChannel(membership)
        SyncServices.__init__(self, connection, self._local, self._local.apart)
        self._local.join(None)

    @property
    def address(self) -> str:
        """Where the server is; another one after it died."""
        return self._local.address


class _AsyncLocalClient(AsyncMnemeClient):
    def __init__(
        self,
        folder: str | os.PathLike[str],
        timeout: float | None,
        retries: int | None,
        server: str | Sequence[str] | None,
    ) -> None:
        connection, membership = _parts(folder, timeout, retries, server)
        self._local = AsyncLocalChannel(membership)
        channel: Any = self._local
        AsyncServices.__init__(self, connection, channel, channel.apart)

    @property
    def address(self) -> str:
        """Where the server is; empty before it was joined, another one after it died."""
        return self._local.address

    async def __aenter__(self) -> AsyncMnemeClient:
        await self._local.join(None)
        return self


def _parts(
    folder: str | os.PathLike[str],
    timeout: float | None,
    retries: int | None,
    server: str | Sequence[str] | None,
) -> tuple[Connection, Membership]:
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
