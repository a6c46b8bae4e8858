"""How large an answer may be: a host puts all of it into the agent's context."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MAX_BYTES = 64 * 1024
"""Of an answer's structured form as JSON, and of a resource."""
_LONGEST = 1_000
"""Characters of a text where also single items are too large."""


def bounded(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A structured answer within `MAX_BYTES`, and what was left out of it; "" where nothing was.

    Items go from the ends of the longest lists; where that is not enough, long texts are cut.
    """
    size = _size(data)
    if size <= MAX_BYTES:
        return data, ""
    data = json.loads(json.dumps(data))
    told: list[str] = []
    for name, items in sorted(_lists(data, ""), key=lambda one: -_size(one[1])):
        before = len(items)
        while size > MAX_BYTES and len(items) > 1:
            size -= _size(items.pop()) + 1
        if len(items) < before:
            told.append(f"{before - len(items)} of {before} {name}")
    if size > MAX_BYTES:
        data = _cut(data)
        told.append(f"all of texts beyond {_LONGEST:,} characters")
    return data, (
        f"The structured form leaves out {', '.join(told)}, to stay within {MAX_BYTES // 1024} KB:"
        " ask for fewer at once, or narrow the question, for the rest."
    )


def bounded_lines(lines: list[str], more: str) -> list[str]:
    """As many lines as `MAX_BYTES` hold, the first one cut if it must be.

    Args:
        lines: a resource's.
        more: how to get at the rest.
    """
    left = MAX_BYTES
    for place, line in enumerate(lines):
        left -= len(line.encode()) + 1
        if left < 0:
            rest = len(lines) - place
            kept = lines[:place] or [line[: MAX_BYTES // 4] + " …"]
            rest -= not lines[:place]
            left_out = f"{rest} more lines are" if rest else "the rest is"
            return [*kept, "", f"({left_out} left out, to stay within 64 KB; {more}.)"]
    return lines


def _lists(value: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lists(inner, key)
    elif isinstance(value, list):
        yield name, value


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else value[:_LONGEST] + " …"
    if isinstance(value, dict):
        return {key: _cut(inner) for key, inner in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
