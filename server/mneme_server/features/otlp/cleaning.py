"""What a stranger sends, made fit to be stored: Unicode, and numbers that are finite and exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mneme_server.common.canonical import Json

MAX_DEPTH = 24
"""Levels of a value that are kept; payloads of events may have 32."""
MAX_TEXT = 65_536
"""Characters of a text or an error that an event may have."""
MAX_EXACT_INTEGER = 2**53
"""Beyond it a number of an event's payload, which is a double, does not hold every integer."""


def clean_text(text: str, most: int = MAX_TEXT) -> str:
    """Return a text without NUL and halves of characters, cut where it is too long."""
    text = text[:most].replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def clean(value: Json, depth: int = MAX_DEPTH) -> Json:
    """Return JSON that can be stored, sent and counted on."""
    if isinstance(value, str):
        return clean_text(value, len(value))
    if value is None or isinstance(value, int | float):
        return _clean_number(value)
    if depth <= 0:
        return "..."
    if isinstance(value, Mapping):
        return {
            clean_text(str(key), 1_000): clean(inner, depth - 1) for key, inner in value.items()
        }
    assert isinstance(value, Sequence)
    return [clean(inner, depth - 1) for inner in value]


def _clean_number(value: int | float | None) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if abs(value) <= MAX_EXACT_INTEGER else str(value)
