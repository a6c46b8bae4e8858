"""The connections to the server: one over stdio, one for each caller's key over HTTP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mneme import AsyncMnemeClient

MAX_CLIENTS = 64
# An agent waits for a machine that does not answer, but no longer than it must: by default gRPC
# takes 20 s to give up. A handshake over a slow line takes about one.
_GIVEN_UP = (("grpc.min_reconnect_backoff_ms", 5_000),)
# Seven seconds in all, as a restart may take: an agent whose server is not there is told so then,
# not at the end of the time that a call may take.
_RETRIES = 5


def connect(address: str | None, api_key: str | None) -> AsyncMnemeClient:
    """A client that soon notices a machine that does not answer.

    Raises:
        ConfigurationError: the settings cannot be used.
    """
    return AsyncMnemeClient(address, api_key=api_key, retries=_RETRIES, options=_GIVEN_UP)


def bearer_token(headers: Mapping[str, str] | None) -> str:
    """The token of an `Authorization: Bearer …` header; empty without one."""
    scheme, _, token = (headers or {}).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(slots=True)
class _Entry:
    client: AsyncMnemeClient
    uses: int = 0
    retired: bool = False


class Clients:
    """Clients by API key, the most recently used kept.

    Args:
        make: makes the client for a key; None stands for the adapter's own key.
        limit: clients to keep open while nobody uses them.
    """

    def __init__(
        self, make: Callable[[str | None], AsyncMnemeClient], limit: int = MAX_CLIENTS
    ) -> None:
        self._make = make
        self._limit = limit
        self._entries: OrderedDict[str | None, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @asynccontextmanager
    async def use(self, key: str | None) -> AsyncIterator[AsyncMnemeClient]:
        """Lend the client of a key; it is not closed while it is lent.

        Raises:
            ConfigurationError: no client can be made of the settings and this key.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(self._make(key))
        self._entries.move_to_end(key)
        entry.uses += 1
        try:
            await self._retire_oldest()
            yield entry.client
        finally:
            entry.uses -= 1
            if entry.retired and not entry.uses:
                await entry.client.aclose()

    async def aclose(self) -> None:
        """Close every client."""
        while self._entries:
            _, entry = self._entries.popitem()
            await entry.client.aclose()

    async def _retire_oldest(self) -> None:
        while len(self._entries) > self._limit:
            _, entry = self._entries.popitem(last=False)
            entry.retired = True
            if not entry.uses:
                await entry.client.aclose()
