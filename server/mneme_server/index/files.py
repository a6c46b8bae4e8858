"""Files that are either whole or not there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = bytes | NDArray[Any]


def _bytes(data: Data) -> bytes | memoryview:
    return data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8).data


def write_durably(path: Path, data: Data) -> None:
    """Write `data` and force it to the disk; the folder's entry is left to `sync_folder`."""
    with path.open("wb") as file:
        file.write(_bytes(data))
        file.flush()
        os.fsync(file.fileno())


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
