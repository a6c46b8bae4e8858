"""Values as people read them in a table's cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from mneme.visible import visible, visible_line

# What is shown of a thing: a field, `record.uses`; how a number in it is written, `uplift:+.3g`; or
# what a function writes of the thing.
Shown = str | Callable[[Any], str]

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 6
_UNITS = ("B", "kB", "MB", "GB", "TB")


def cell_of(thing: Any, shown: Shown) -> str:
    """What is shown of a thing, on one line."""
    return _written(thing, shown, preview)


def facts_of(thing: Any, shown: Mapping[str, Shown]) -> list[tuple[str, str]]:
    """The names and values of what is shown of a thing; texts with their lines."""
    return [(title, _written(thing, one, clean)) for title, one in shown.items()]


def _written(thing: Any, shown: Shown, text: Callable[[str], str]) -> str:
    if not isinstance(shown, str):
        return shown(thing)
    field, _, form = shown.partition(":")
    value = attrgetter(field)(thing)
    if value is None:
        return ""
    if form:
        return format(value, form)
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, Mapping | list):
        return preview(", ".join(value) if isinstance(value, list) else json_text(value))
    return text(value) if isinstance(value, str) else count(value)


def preview(text: str, limit: int = 500) -> str:
    """A text on one line; what a terminal would obey, or not show, is named."""
    # Cut first: a stored text may be long, and only its beginning is shown.
    head = text[: 4 * limit]
    return cut(visible_line(head) + ("…" if len(head) < len(text) else ""), limit)


def clean(text: str) -> str:
    """A text with its lines; what a terminal would obey, or not show, is named."""
    return visible(text)


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters; "…" ends one that was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def score(value: float) -> str:
    """A score from 0 to 1 as a bar and a number."""
    eighths = round(max(0.0, min(1.0, value)) * _BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_BLOCKS[rest] if rest else "")
    return f"{value:.2f} {bar:<{_BAR_WIDTH}}"


def when(time: datetime | None) -> str:
    """A time in the reader's own time zone; empty when there is none."""
    if time is None:
        return ""
    try:
        return time.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):  # At the very ends of the calendar.
        return time.isoformat()


def name(choice: str | None) -> str:
    """An enum's value; empty when it is unspecified. One that is newer than this is a number."""
    return "" if choice is None else str(choice)


def json_text(value: Mapping[str, Any]) -> str:
    """Free JSON on one line; empty when there is none."""
    return json.dumps(value, ensure_ascii=False) if value else ""


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: "1 event", "2 events"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(byte_count: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in _UNITS[:-1]:
        if byte_count < 1000:
            return f"{byte_count:.0f} {unit}" if unit == "B" else f"{byte_count:.1f} {unit}"
        byte_count /= 1000
    return f"{byte_count:.1f} {_UNITS[-1]}"


def span(seconds: float) -> str:
    """How long something took or lasts, to its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
