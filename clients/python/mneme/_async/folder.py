"""A memory in a folder, without a server to start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mneme._async.client import AsyncMnemeClient
from mneme._core.local_aio_channel import AsyncLocalChannel
from mneme._core.local_joining import connection_and_membership
from mneme._generated.services import AsyncServices


def local_async(
    folder: str | os.PathLike[str],
    *,
    timeout: float | None = 30.0,
    retries: int | None = None,
    server: str | Sequence[str] | None = None,
) -> AsyncMnemeClient:
    """A client of the memory in a folder, whose server starts and ends by itself.

        async with mneme.local_async("./memory") as memory:
            await memory.record_events(
                [{"session_id": "s1", "event_type": "message", "text": "the registry moved"}]
            )

    The first process that uses the folder starts its server, others join it: agents of one user on
    one machine share the memory. Synchronous code joins it here and now, asyncio when it enters the
    block, or else by its first call. The server listens on loopback, with a key of its own that
    lies in the folder for this user alone, writes to `server.log` there, and ends a few seconds
    after its last participant has gone; if it dies, the next call starts it again. Everything else
    is as with `AsyncMnemeClient`.

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
    return _AsyncLocalClient(folder, timeout, retries, server)


class _AsyncLocalClient(AsyncMnemeClient):
    def __init__(
        self,
        folder: str | os.PathLike[str],
        timeout: float | None,
        retries: int | None,
        server: str | Sequence[str] | None,
    ) -> None:
        connection, membership = connection_and_membership(folder, timeout, retries, server)
        self._local = AsyncLocalChannel(membership)
        channel: Any = self._local
        AsyncServices.__init__(self, connection, channel, channel.apart)
        self._local.join_when_made()

    @property
    def address(self) -> str:
        """Where the server is; empty before it was joined, another one after it died."""
        return self._local.address

    async def __aenter__(self) -> AsyncMnemeClient:
        await self._local.join_when_entered()
        return self
