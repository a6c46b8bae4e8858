"""The parts of a state that an explanation speaks of: the numbers, texts and truth values in it.

A list inside an object that nobody declared is one part: in which order its items stand means
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mneme_server.common.canonical import Json
from mneme_server.features.learning.spaces import Box, Dict, MultiDiscrete, Space

Path: TypeAlias = tuple[str | int, ...]


class Absent:
    """What a state has where it lacks a part."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()
Part: TypeAlias = "Json | Absent"


def parts_of(space: Space | None, state: Json, path: Path = ()) -> dict[Path, Json]:
    """Return the parts of a state, each with where it is."""
    if isinstance(state, Mapping):
        inner = space.spaces if isinstance(space, Dict) else {}
        found: dict[Path, Json] = {}
        for key in sorted(state):
            found |= parts_of(inner.get(key), state[key], (*path, key))
        return found
    if isinstance(space, Box | MultiDiscrete) and isinstance(state, Sequence):
        return {(*path, place): one for place, one in enumerate(state)}
    return {path: state}


def with_parts(state: Json, changes: Mapping[Path, Part]) -> Json:
    """Return a state with other parts, or without some."""
    for path, part in changes.items():
        state = _with(state, path, part)
    return state


def name_of(path: Path) -> str:
    """Return what a part is called: "task.type", "position[2]"; "state" if it is all there is."""
    name = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return name.removeprefix(".") if path and path[0] != "" else "state"


def _with(state: Any, path: Path, part: Part) -> Any:
    if not path:
        return state if isinstance(part, Absent) else part
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [_with(one, rest, part) if n == first else one for n, one in enumerate(state)]
    inner = state if isinstance(state, Mapping) else {}
    if not rest and isinstance(part, Absent):
        return {key: one for key, one in inner.items() if key != first}
    if rest and isinstance(part, Absent) and first not in inner:
        return state
    return {**inner, first: _with(inner.get(first, {}), rest, part)}
