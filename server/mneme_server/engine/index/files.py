"""Files that are either whole or not there, and manifests that name them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = bytes | NDArray[Any]
_PIECE = 1 << 20
"""Bytes that are read and added to the digest while they are in the processor's cache."""


def _bytes(data: Data) -> bytes | memoryview:
    if isinstance(data, bytes):
        return data
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data


def write_pieces(path: Path, pieces: Iterable[Data]) -> tuple[str, int]:
    """Write data one behind the other and force it to the disk; return its digest and bytes. The
    folder's entry is left to `sync_folder`.
    """
    sha256, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for piece in pieces:
            data = _bytes(piece)
            sha256.update(data)
            file.write(data)
            size += len(data)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest(), size


class PieceReader:
    """Reads what `write_pieces` wrote.

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

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_sealed(path: Path, manifest: Any) -> None:
    """Write JSON with its digest beside `path`, force it to the disk and rename it there."""
    content = json.dumps(manifest, indent=1)
    sealed = {"sha256": digest(content.encode()), "manifest": content}
    temporary = path.with_name(path.name + ".tmp")
    write_pieces(temporary, [json.dumps(sealed).encode()])
    temporary.replace(path)
    sync_folder(path.parent)


def unsealed(path: Path, sealed: Any) -> Any:
    """Return the JSON that `write_sealed` was given, of what the file at `path` holds.

    Raises:
        ValueError: it is not what was written there.
    """
    try:
        content = sealed["manifest"].encode()
        whole = digest(content) == sealed["sha256"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what was written there") from error
    if not whole:
        raise ValueError(f"{path} does not have its checksum")
    return json.loads(content)


def named_in(manifest: Path, name: str) -> Path:
    """Return the file that a manifest names.

    Raises:
        ValueError: it lies elsewhere than the manifest.
    """
    path = manifest.parent / name
    if path.parent != manifest.parent:
        raise ValueError(f"{manifest} names a file elsewhere")
    return path


def keep_only(folder: Path, names: Collection[str]) -> None:
    """Delete the other files of a folder."""
    for file in folder.iterdir():
        if file.is_file() and file.name not in names:
            file.unlink()


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
