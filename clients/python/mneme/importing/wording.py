"""What a tool's call or answer is remembered by, in words.

A server makes such texts itself where none is given. An import gives them, because an event that
is imported again must say the same as the first time, whatever the server's version; and because
a transcript's JSON still has its keys in the order in which the agent wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# More than an embedding model reads, enough words for a lexical index, no copy of a long result.
_MAX_WORDS = 4_000
# What stands for the middle of a text that is too long.
_LEFT_OUT = " … "
_BEGINNING = _MAX_WORDS // 2 - len(_LEFT_OUT)


def tool_text(kind: str, name: str, content: Any) -> str:
    """The text of a tool's event, e.g. "tool_call: search: origin JFK, destination SEA".

    Args:
        kind: the event's type.
        name: the tool; may be empty.
        content: the arguments, the result or the error: text or JSON.

    Returns:
        At most 4,000 characters: of a longer text its beginning and its end, where a trace and a
        program's output say what went wrong. Empty when there is no content.
    """
    body = content if isinstance(content, str) else _joined(content)
    if not body:
        return ""
    text = ": ".join(filter(None, [kind, name, body]))
    if len(text) <= _MAX_WORDS or not isinstance(content, str):
        return text[:_MAX_WORDS]
    return text[:_BEGINNING] + _LEFT_OUT + text[_BEGINNING + len(_LEFT_OUT) - _MAX_WORDS :]


def _joined(content: Any) -> str:
    """JSON as words: quotes and braces are noise to a model."""
    parts: list[str] = []
    length = 0
    for part in _parts("", content):
        parts.append(part)
        length += len(part)
        if length > _MAX_WORDS:
            break
    return ", ".join(parts)


def _parts(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner_key, inner in value.items():
            yield from _parts(str(inner_key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(key, inner)
    elif value is not None:
        yield f"{key} {value}" if key else str(value)
