"""Standard input and output on the event loop itself.

The library reads and writes them in worker threads, which costs each call three changes of thread;
on pipes, which is what hosts give, the event loop can do it alone. Elsewhere (a terminal, a file,
Windows) threads do. Either way a line that cannot be served is answered by `unreadable.py`.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, Protocol, cast

import anyio
from anyio import to_thread
from mcp.server.stdio import stdio_server
from mcp_types import JSONRPCError

from mneme_mcp.unreadable import answers_of, too_long

_MAX_LINE_BYTES = 64 * 1024 * 1024
_KEPT_OF_LONGER = 64 * 1024
"""Bytes of the beginning of a longer line, which may tell whom to answer."""


class _TooLong(Exception):
    """A line is longer than what is read; `args[0]` is its beginning."""


class _Source(Protocol):
    async def line(self) -> bytes:
        """The next line; nothing at the end. Raises `_TooLong` after a line that was skipped."""
        ...


class _Sink(Protocol):
    async def send(self, data: bytes) -> None:
        """Write these bytes out."""
        ...


class _PipeSource:
    """A pipe that the event loop reads."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def line(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            beginning = (await self._reader.readexactly(error.consumed))[:_KEPT_OF_LONGER]
        while True:
            try:
                await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                continue
            except asyncio.IncompleteReadError:
                pass
            raise _TooLong(beginning)


class _PipeSink:
    """A pipe that the event loop writes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class _File:
    """What only threads can read and write without keeping the event loop."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def line(self) -> bytes:
        line = await self._part()
        if len(line) < _MAX_LINE_BYTES or line.endswith(b"\n"):
            return line
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = await self._part()
        raise _TooLong(line[:_KEPT_OF_LONGER])

    async def send(self, data: bytes) -> None:
        await to_thread.run_sync(self._write, data)

    async def _part(self) -> bytes:
        return await to_thread.run_sync(self._file.readline, _MAX_LINE_BYTES)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()


class _Output:
    """Standard output, as the library writes it."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink

    async def write(self, text: str) -> int:
        await self._sink.send(text.encode())
        return len(text)

    async def flush(self) -> None:
        """Nothing is left to be written."""


class _Input:
    """Standard input, as the library reads it: the lines that can be served."""

    def __init__(self, source: _Source, output: _Output) -> None:
        self._source = source
        self._output = output

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> str:
        while True:
            try:
                data = await self._source.line()
            except _TooLong as error:
                await self._answer(too_long(_text(error.args[0]), _MAX_LINE_BYTES))
                continue
            if not data:
                raise StopAsyncIteration
            line = _text(data)
            if not line.strip():
                continue
            answers = answers_of(line)
            if answers is None:
                return line
            await self._answer(answers)

    async def _answer(self, errors: list[JSONRPCError]) -> None:
        for error in errors:
            await self._output.write(
                error.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            )


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").removeprefix("\ufeff")


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Any, Any]]:
    """MCP's streams over standard input and output."""
    piped = sys.platform != "win32" and _is_pipe(0) and _is_pipe(1)
    # What else is printed, by this process or its children, must not get between the messages.
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    async with (_pipes if piped else _files)(source, sink) as (lines, sending):
        output = _Output(sending)
        async with stdio_server(
            cast("anyio.AsyncFile[str]", _Input(lines, output)),
            cast("anyio.AsyncFile[str]", output),
        ) as streams:
            yield streams


@asynccontextmanager
async def _pipes(source: int, sink: int) -> AsyncIterator[tuple[_Source, _Sink]]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
    )
    outgoing, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(sink, "wb", 0)
    )
    try:
        yield _PipeSource(reader), _PipeSink(asyncio.StreamWriter(outgoing, flow, None, loop))
    finally:
        incoming.close()
        outgoing.close()


@asynccontextmanager
async def _files(source: int, sink: int) -> AsyncIterator[tuple[_Source, _Sink]]:
    # Not closed: a thread may still be waiting for a line when the adapter ends.
    yield _File(os.fdopen(source, "rb", closefd=False)), _File(os.fdopen(sink, "wb", closefd=False))


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
