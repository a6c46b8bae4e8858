"""Files that are either whole or not there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Data = bytes | NDArray[Any]
_PIECE = 1 << 20
"""Bytes that are read and added to the digest while they are in the processor's cache."""


def _bytes(data: Data) -> bytes | memoryview:
    return data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8).data


def write_durably(path: Path, data: Data) -> None:
    """Write `data` and force it to the disk; the folder's entry is left to `sync_folder`."""
    with path.open("wb") as file:
        file.write(_bytes(data))
        file.flush()
        os.fsync(file.fileno())


def write_pieces(path: Path, pieces: Iterable[NDArray[Any]]) -> tuple[str, int]:
    """Write arrays one behind the other, as `write_durably`; return their digest and bytes."""
    sha256, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for piece in pieces:
            data = _bytes(np.ascontiguousarray(piece))
            sha256.update(data)
            file.write(data)
            size += len(data)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest(), size


class PieceReader:
    """Reads what `write_pieces` wrote. A context manager.

    Only when `finish` returns is what was read known to be what was written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sha256 = hashlib.sha256()
        self._file = path.open("rb", buffering=0)

    def into(self, array: NDArray[Any]) -> None:
        """Read the next piece into a contiguous array of its length.

        Raises:
            ValueError: the file has less.
        """
        target = array.reshape(-1).view(np.uint8).data
        place = 0
        while place < len(target):
            count = self._file.readinto(target[place : place + _PIECE])
            if not count:
                raise ValueError(f"{self._path} is shorter than it was")
            self._sha256.update(target[place : place + count])
            place += count

    def finish(self, expected: str) -> None:
        """Check that nothing is left, and the digest.

        Raises:
            ValueError: the file is not what was written.
        """
        if self._file.read(1) or self._sha256.hexdigest() != expected:
            raise ValueError(f"{self._path} does not have its checksum")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def write_atomically(path: Path, data: Data) -> None:
    """Write `data` beside `path`, force it to the disk and rename it there."""
    temporary = path.with_name(path.name + ".tmp")
    write_durably(temporary, data)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Force the folder's entries to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(data: Data) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(_bytes(data)).hexdigest()
