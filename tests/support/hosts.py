"""MCP hosts: the official client, over stdio with an adapter of its own, and over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

_START_S = 60.0


def environment(**settings: str) -> dict[str, str]:
    """What the adapter inherits: where Python finds it, and these settings of Mneme."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    return kept | {f"MNEME_{name.upper()}": value for name, value in settings.items()}


def command(*arguments: str, **settings: str) -> StdioServerParameters:
    """How a host starts the adapter."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "mneme_mcp", *arguments],
        env=environment(**settings),
    )


@asynccontextmanager
async def stdio_host(
    *arguments: str, log: Path | None = None, mode: str = "auto", **settings: str
) -> AsyncIterator[Client]:
    """A host that starts the adapter with these arguments and MNEME_* settings."""
    with (log or Path(os.devnull)).open("w") as errors:
        transport = stdio_client(command(*arguments, **settings), errlog=errors)
        async with Client(transport, mode=mode) as host:
            yield host


@contextmanager
def http_adapter(*arguments: str, **settings: str) -> Iterator[str]:
    """An adapter that serves HTTP on a free port; the block gets its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mneme_mcp", "--http", "127.0.0.1:0", *arguments],
        env=os.environ | environment(**settings),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    watchdog = threading.Timer(_START_S, process.kill)
    watchdog.start()
    try:
        line = process.stdout.readline()
        watchdog.cancel()
        assert line.startswith("serving on "), f"the adapter said {line!r}"
        yield line.removeprefix("serving on ").strip()
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


@asynccontextmanager
async def http_host(url: str, key: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    """A host that sends this key."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as host,
    ):
        yield host


def text_of(result: CallToolResult) -> str:
    """What a tool said."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
