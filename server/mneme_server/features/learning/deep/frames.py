"""Frames in which arrays and JSON travel between the server and a worker, and are stored.

A frame is its length, the length of a line of JSON, that line, and the bytes of the arrays. In the
JSON an array stands as {"$array": [where it begins, type, shape]}, and other keys that begin so get
one more "$". Nothing in a frame is executed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 30
"""No frame is larger: one that says so is damaged."""

_HEAD = struct.Struct("<QI")
_TYPES = frozenset({"float32", "float64", "int64", "int32", "uint8", "bool"})
_MARK = "$array"


def pack(value: Mapping[str, Any]) -> bytes:
    """Return JSON with arrays in it as a frame."""
    arrays: list[bytes] = []
    size = 0

    def plain(part: Any) -> Any:
        nonlocal size
        if isinstance(part, np.ndarray):
            arrays.append(np.ascontiguousarray(part).tobytes())
            size += part.nbytes
            return {_MARK: [size - part.nbytes, part.dtype.name, list(part.shape)]}
        if isinstance(part, Mapping):
            return {f"${key}" if key[:1] == "$" else key: plain(one) for key, one in part.items()}
        if isinstance(part, list | tuple):
            return [plain(inner) for inner in part]
        return part

    line = json.dumps(plain(value)).encode()
    body = b"".join(arrays)
    return _HEAD.pack(4 + len(line) + len(body), len(line)) + line + body


def unpack(frame: bytes) -> dict[str, Any]:
    """Return what was packed; the arrays can be written to.

    Raises:
        ValueError: it is no whole frame.
    """
    try:
        length, line = _HEAD.unpack_from(frame)
        if length + 8 != len(frame):
            raise ValueError(f"a frame of {length + 8} bytes has {len(frame)}")
        start = _HEAD.size + line

        def whole(part: dict[str, Any]) -> Any:
            if _MARK in part:
                return _array(frame, start, part[_MARK])
            return {key[1:] if key[:1] == "$" else key: one for key, one in part.items()}

        found: dict[str, Any] = json.loads(frame[_HEAD.size : start], object_hook=whole)
        return found
    except (struct.error, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"no frame: {error}") from error


def read(read_exactly: Callable[[int], bytes]) -> dict[str, Any] | None:
    """Read a frame from a pipe; None at its end.

    Args:
        read_exactly: returns so many bytes, or fewer at the end.

    Raises:
        ValueError: it is no whole frame.
    """
    head = read_exactly(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<Q", head)
    if length > MOST_BYTES:
        raise ValueError(f"a frame says that it has {length} bytes")
    body = read_exactly(length)
    return None if len(body) < length else unpack(head + body)


def _array(frame: bytes, start: int, told: Sequence[Any]) -> NDArray[Any]:
    place, name, shape = told
    if name not in _TYPES:
        raise ValueError(f"arrays of {name!r} do not travel")
    count = math.prod(shape)
    if place < 0 or any(size < 0 for size in shape):
        raise ValueError("an array is not in its frame")
    return np.frombuffer(frame, np.dtype(name), count, start + place).reshape(shape).copy()
