"""Serialization of what was learned: JSON and arrays, read back without running code.

The bytes are an archive as NumPy writes it (`.npz`): an array for each array, and "json", the rest,
in which {"$array": name} stands for one of them.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_JSON = "json"
_ARRAY = "$array"
_UNREADABLE = (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError)
_UNSAFE = re.compile(r"\W+")


def encoded(learned: Mapping[str, Any]) -> bytes:
    """Return a mapping of JSON and arrays as bytes."""
    arrays: dict[str, NDArray[Any]] = {}
    text = json.dumps(_without(learned, "", arrays), separators=(",", ":"))
    buffer = io.BytesIO()
    arrays[_JSON] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def decoded(data: bytes) -> dict[str, Any]:
    """Return the mapping of `encoded`; tuples have become lists.

    Raises:
        ValueError: it is not that.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        found = _with(json.loads(arrays.pop(_JSON).tobytes()), arrays)
    except _UNREADABLE as error:
        raise ValueError(f"it is no archive of what was learned: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no mapping")
    return found


def json_of(data: bytes) -> Any:
    """Return the mapping of `encoded` without its arrays, which are not read.

    Raises:
        ValueError: it is not that.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return json.loads(archive[_JSON].tobytes())
    except _UNREADABLE as error:
        raise ValueError(f"it is no archive of what was learned: {error}") from error


def _without(value: Any, path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"{len(arrays)}_{_UNSAFE.sub('_', path)[:60]}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, Mapping):
        return {_escaped(str(key)): _without(one, str(key), arrays) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without(one, path, arrays) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _with(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {_unescaped(key): _with(one, arrays) for key, one in value.items()}
    if isinstance(value, list):
        return [_with(one, arrays) for one in value]
    return value


def _escaped(key: str) -> str:
    """Return a key that no array's mark is taken for: callers' objects are in there, too."""
    return f"${key}" if key.startswith("$") else key


def _unescaped(key: str) -> str:
    return key[1:] if key.startswith("$$") else key
