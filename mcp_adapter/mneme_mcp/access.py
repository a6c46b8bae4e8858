"""Whose memory a request is about: the adapter's own key over stdio, the caller's over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp.server.mcpserver import Context
from mneme import AsyncMnemeClient, ConfigurationError, MnemeError, local_async

from mneme_mcp.clients import Clients, bearer_token, connect
from mneme_mcp.own import Own


class Access:
    """Finds the client for a request.

    Over HTTP the adapter's own key is never used: whoever reaches its port has no more rights than
    the key that it sends.

    Args:
        address: the server; None: MNEME_ADDRESS, else the client's default.
        over_http: whether callers send their own keys.
        local: the folder whose own server is used, instead of an address.
        own: the user, the agent and the project that calls are about where they name none.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        over_http: bool = False,
        local: Path | None = None,
        own: Own = MappingProxyType({}),
    ) -> None:
        self._given_address = address
        self.over_http = over_http
        self.local = local
        self.own = own
        self.clients = Clients(lambda key: local_async(local) if local else connect(address, key))

    @property
    def address(self) -> str:
        """Where the server is, for messages."""
        if self.local is not None:
            return str(self.local)
        try:
            return connect(self._given_address, "").address
        except ValueError:
            return self._given_address or "the address in MNEME_ADDRESS"

    async def prepare(self) -> None:
        """Start the server of a local folder, so that the first call need not wait for it.

        Whatever is wrong with it is said to whoever calls.
        """
        if self.local is not None:
            with suppress(MnemeError, ConfigurationError):
                async with self.clients.use(None) as client:
                    await client.__aenter__()  # Joins; `aclose` leaves.

    @asynccontextmanager
    async def client_for(self, context: Context[Any, Any]) -> AsyncIterator[AsyncMnemeClient]:
        """Lend the client of whoever sent the request.

        Raises:
            ConfigurationError: no client can be made of the settings and the key.
        """
        key = bearer_token(context.headers) if self.over_http else None
        async with self.clients.use(key) as client:
            yield client
