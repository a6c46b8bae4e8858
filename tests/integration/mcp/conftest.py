"""Hosts that many tests share: one for each transport, of a tenant of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from mcp import Client
from mneme.v1 import auth_pb2
from support.hosts import http_adapter, http_host, stdio_host


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def adapter(server: Any) -> Iterator[str]:
    """One adapter over HTTP, for all tenants."""
    with http_adapter("--toolsets", "all", "--address", server.address) as url:
        yield url


@pytest.fixture(scope="module", params=["stdio", "http", "stdio, handshake of 2025"])
async def host(request: pytest.FixtureRequest, server: Any, adapter: str) -> AsyncIterator[Client]:
    """A host with every tool, as a tenant that only one module uses over one transport."""
    scopes = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)
    key = server.keys.tenant("mcp", *scopes).secret
    if request.param == "http":
        async with http_host(adapter, key) as host:
            yield host
        return
    mode = "auto" if request.param == "stdio" else "legacy"
    async with stdio_host(
        "--toolsets", "all", address=server.address, api_key=key, mode=mode
    ) as host:
        yield host
