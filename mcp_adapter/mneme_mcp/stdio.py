"""Standard input and output on the event loop itself.

The library reads and writes them in worker threads, which costs each call three changes of thread;
on pipes, which is what hosts give, the event loop can do it alone. Elsewhere (a terminal, a file,
Windows) the library's own way is taken.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server

_MAX_LINE_BYTES = 64 * 1024 * 1024


class _Lines:
    """Standard input by lines, as the library reads it."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", errors="replace")


class _Output:
    """Standard output, as the library writes it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> int:
        self._writer.write(text.encode())
        return len(text)

    async def flush(self) -> None:
        await self._writer.drain()


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Any, Any]]:
    """MCP's streams over standard input and output."""
    if sys.platform == "win32" or not (_is_pipe(0) and _is_pipe(1)):
        async with stdio_server() as streams:
            yield streams
        return
    # What else is printed, by this process or its children, must not get between the messages.
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
    )
    outgoing, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(sink, "wb", 0)
    )
    writer = asyncio.StreamWriter(outgoing, flow, None, loop)
    try:
        async with stdio_server(
            cast("anyio.AsyncFile[str]", _Lines(reader)),
            cast("anyio.AsyncFile[str]", _Output(writer)),
        ) as streams:
            yield streams
    finally:
        incoming.close()
        outgoing.close()


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
