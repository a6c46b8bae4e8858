"""Values as people read them in a table's cell."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    from google.protobuf.timestamp_pb2 import Timestamp

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 6
_UNITS = ("B", "kB", "MB", "GB", "TB")
# What a terminal would obey instead of showing it.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def preview(text: str, limit: int = 500) -> str:
    """A text on one line, without what a terminal would obey."""
    # Cut first: a stored text may be long, and only its beginning is shown.
    head = text[: 4 * limit]
    shown = " ".join(_CONTROL.sub(" ", head).split())
    return cut(shown + ("…" if len(head) < len(text) else ""), limit)


def clean(text: str) -> str:
    """A text with its lines, without what a terminal would obey."""
    return "\n".join(_CONTROL.sub(" ", line) for line in text.split("\n"))


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters; "…" ends one that was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def score(value: float) -> str:
    """A score from 0 to 1 as a bar and a number."""
    eighths = round(max(0.0, min(1.0, value)) * _BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_BLOCKS[rest] if rest else "")
    return f"{value:.2f} {bar:<{_BAR_WIDTH}}"


def when(time: Timestamp) -> str:
    """A time in the reader's own time zone; empty when it is not set."""
    if not time.seconds and not time.nanos:
        return ""
    try:
        return datetime.fromtimestamp(time.seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return time.ToJsonString()


def name_of(enum: EnumTypeWrapper, number: int) -> str:
    """An enum's value as the command line takes it: "tool_error" for EVENT_TYPE_TOOL_ERROR."""
    values = enum.DESCRIPTOR.values_by_number
    if number not in values:
        return str(number)
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return values[number].name.removeprefix(prefix).lower() if number else ""


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
