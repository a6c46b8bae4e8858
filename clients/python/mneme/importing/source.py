"""A file to import: its stream, unpacked, and what is known of it beside its content."""

from __future__ import annotations

import gzip
import io
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from mneme._extras import from_wheels

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# As much is unpacked at once: each four bytes of it may be 128 KiB.
_PACKED = 1024
_CHUNK = 64 * 1024
# What unpacks to more than both is no transcript: text that says something packs to a tenth or so.
_MOST_UNPACKED = 256 * 1024 * 1024
_MOST_TIMES = 200
# A transcript that nobody wrote to for this long has ended, or its writer was killed.
_SETTLED_S = 3600


class UnreadableError(Exception):
    """A file that cannot be read; the message says why, and what helps."""


@dataclass(slots=True)
class Source:
    """One file to read.

    Args:
        name: how messages call it.
        stream: its content, unpacked.
        path: where it lies; None for a pipe.
        settled: nothing more will be written to it, by what was said of it, or by when it was
            written.
        complete: what was said of it; None: nothing.
        mask: masks secrets in JSON that was read from elsewhere; None leaves it as it is.
    """

    name: str
    stream: BinaryIO
    path: Path | None = None
    settled: bool = True
    complete: bool | None = None
    mask: Callable[[Any], Any] | None = None

    def settled_since(self, latest: datetime | None) -> bool:
        """Whether nothing more will be written: a copy is as old as the last thing in it."""
        if self.settled or self.complete is not None or latest is None:
            return self.settled
        return time.time() - latest.timestamp() > _SETTLED_S

    def masked(self, value: Any) -> Any:
        """A value without secrets, if they are to be masked."""
        return value if self.mask is None else self.mask(value)


def open_source(
    name: str,
    stream: BinaryIO,
    *,
    complete: bool | None = None,
    mask: Callable[[Any], Any] | None = None,
) -> Source:
    """Make a source of an open file, which may be packed with gzip or Zstandard.

    Args:
        name: how messages call it.
        stream: the file.
        complete: whether nothing more will be written to it; None says so of pipes, and of files
            that were not written to for an hour.
        mask: masks secrets.

    Raises:
        UnreadableError: it is packed, and what unpacks it is not installed.
    """
    path = Path(name) if name != "-" and _regular(stream) else None
    buffered: Any = stream if hasattr(stream, "peek") else io.BufferedReader(cast(Any, stream))
    beginning = buffered.peek(4)
    if beginning.startswith(_ZSTD_MAGIC):
        plain: BinaryIO = _bounded(buffered, _unpack)
    elif beginning.startswith(_GZIP_MAGIC):
        plain = _bounded(buffered, lambda packed: gzip.GzipFile(fileobj=packed, mode="rb"))
    else:
        plain = buffered
    settled = _settled(stream) if complete is None else complete
    return Source("standard input" if name == "-" else name, plain, path, settled, complete, mask)


def unpacking_errors() -> tuple[type[Exception], ...]:
    """What reading a damaged packed file raises."""
    found: list[type[Exception]] = [UnreadableError, EOFError, gzip.BadGzipFile, zlib.error]
    for module in ("compression.zstd", "zstandard"):
        try:
            found.append(__import__(module, fromlist=["ZstdError"]).ZstdError)
        except ImportError:
            continue
    return tuple(found)


def _bounded(packed: BinaryIO, unpack: Callable[[BinaryIO], Any]) -> BinaryIO:
    """A packed stream, unpacked as long as it holds no more than a transcript can."""
    counted = _Counted(packed)
    return io.BufferedReader(_Chunks(_plausible(counted, unpack(cast(BinaryIO, counted)))))


def _plausible(packed: _Counted, plain: Any) -> Iterator[bytes]:
    count = 0
    while chunk := plain.read1(_CHUNK) if hasattr(plain, "read1") else plain.read(_CHUNK):
        count += len(chunk)
        if count > max(_MOST_UNPACKED, _MOST_TIMES * packed.count):
            raise UnreadableError(
                f"it unpacks to more than {_MOST_TIMES} times its size, which no transcript does;"
                " to import it all the same, unpack it first"
            )
        yield chunk


class _Counted(io.RawIOBase):
    """A stream that counts what is read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._stream.read(len(buffer))
        buffer[: len(read)] = read
        self.count += len(read)
        return len(read)


def _unpack(stream: BinaryIO) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14 and later.
    except ImportError:
        pass
    else:
        return zstd.ZstdFile(stream)
    try:
        import zstandard
    except ImportError as error:
        raise UnreadableError(
            "packed with Zstandard, which Python reads from 3.14 on; for this one install the"
            f" package with the extra `import`, {from_wheels('import')}"
        ) from error
    return _Chunks(_unpacked(stream, lambda: zstandard.ZstdDecompressor().decompressobj()))


def _unpacked(stream: BinaryIO, new_frame: Callable[[], Any]) -> Iterator[bytes]:
    """Unpack one frame after the other. The library's own reader takes where a file was cut for
    its end."""
    packed = stream.read(_PACKED)
    while packed:
        frame = new_frame()
        while not frame.eof:
            if not packed:
                raise EOFError("the file is cut off")
            yield frame.decompress(packed)
            packed = frame.unused_data or stream.read(_PACKED)


class _Chunks(io.RawIOBase):
    """A stream of bytes that come in chunks of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview(next(filter(None, self._chunks), b""))
        taken = self._left[: len(buffer)]
        buffer[: len(taken)] = taken
        self._left = self._left[len(taken) :]
        return len(taken)


def _regular(stream: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # It is no file of the operating system.
        return False


def _settled(stream: BinaryIO) -> bool:
    return not _regular(stream) or time.time() - os.fstat(stream.fileno()).st_mtime > _SETTLED_S
