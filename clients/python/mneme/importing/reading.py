"""Takes a file apart into records: JSON Lines, a JSON list, or one JSON document.

JSON Lines are read line by line, so a file may be larger than the memory. Anything else is held
as text, and its records are decoded one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]')
_MOST_DIGITS = 4_000  # Python reads no longer integers.
TOO_DEEP = "not readable: nested too deep"
# What the records of other formats have, and messages have not.
_RECORD = frozenset(("memory", "sessionId", "payload", "messages"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands.

    Args:
        file: the file's name.
        record: its number in the file, from 1.
        line: the line on which it begins, from 1.
    """

    file: str
    record: int
    line: int

    def __str__(self) -> str:
        return f"{self.file}: record {self.record}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record.

    Args:
        place: where it stands.
        value: what it says.
        original: the same before secrets were masked, for ids that masking must not change;
            None when nothing was masked.
        gaps: where messages are missing from a list of them since they could not be read: for
            each, the number of those before it that could.
    """

    place: Place
    value: Any
    original: Any = None
    gaps: tuple[int, ...] = ()

    @property
    def unmasked(self) -> Any:
        """The value as the file has it; only hashes of it may leave this process."""
        return self.value if self.original is None else self.original


@dataclass(frozen=True, slots=True)
class Broken:
    """What could not be used, and why."""

    place: Place
    reason: str


class _CutOff(Broken):
    """The place in a list after which nothing can be read."""

    __slots__ = ()


def read_records(stream: BinaryIO, name: str) -> Iterator[Record | Broken]:
    """Read a file's records, in order; what cannot be decoded is reported in its place."""
    number, first = _next_line(stream, 0)
    if first is None:
        return
    line, following = _next_line(stream, number)
    if _is_lines(first, following):
        rest = [] if following is None else [(line, following)]
        yield from _lines(chain([(number, first)], rest, _numbered(stream, line)), name)
    else:
        # The blank lines between were skipped; put them back to keep the count of lines.
        gap = b"\n" * max(0, line - number - 1)
        head = b"\n" * (number - 1) + first
        yield from _document(head + gap + (following or b"") + stream.read(), name)


def is_conversation(value: Any) -> bool:
    """Whether a value is a list of messages (or items of a response), rather than of records."""
    if not isinstance(value, list):
        return False
    objects = [item for item in value if isinstance(item, dict) and item]
    return all(map(_may_be_said, objects)) and any(map(_is_said, objects))


def _is_said(item: dict[str, Any]) -> bool:
    kind = str(item.get("type"))
    return "role" in item or kind.endswith(("_call", "_call_output")) or kind == "reasoning"


def _may_be_said(item: dict[str, Any]) -> bool:
    """Whether a message or an item of an unknown kind could look like this; no record does."""
    return ("role" in item or "type" in item) and not _RECORD & item.keys()


def _next_line(stream: BinaryIO, number: int) -> tuple[int, bytes | None]:
    """The next line that is not blank, with its number."""
    for raw in stream:
        number += 1
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if line.strip():
            return number, line
    return number, None


def _is_lines(first: bytes, following: bytes | None) -> bool:
    """Whether a file that begins with these two lines holds one document a line."""
    if _parses(first):
        return following is not None or first.lstrip()[:1] != b"["
    # A broken first line must not turn a large file into one document.
    return first.strip() not in (b"[", b"{") and following is not None and _parses(following)


def _parses(line: bytes) -> bool:
    try:
        value = _DECODER.decode(_text(line))
    except (ValueError, RecursionError):
        return False
    # A lone number or text is a line of a broken-up list.
    return isinstance(value, dict | list)


def _numbered(stream: BinaryIO, number: int) -> Iterator[tuple[int, bytes]]:
    return enumerate(stream, start=number + 1)


def _lines(lines: Iterator[tuple[int, bytes]], name: str) -> Iterator[Record | Broken]:
    record = 0
    for number, line in lines:
        if not line.strip():
            continue
        record += 1
        place = Place(name, record, number)
        try:
            yield Record(place, _DECODER.decode(_text(line)))
        except (ValueError, RecursionError) as error:
            yield Broken(place, _reason(error))


def _document(data: bytes, name: str) -> Iterator[Record | Broken]:
    text = _text(data)
    start = _skip(text, 0)
    if text[start] == "[":
        yield from _join_conversation(list(_elements(text, start + 1, name, closing="]")))
    else:
        yield from _elements(text, start, name, closing="")


def _join_conversation(found: list[Record | Broken]) -> Iterator[Record | Broken]:
    """A list whose elements are messages is one record; else each element is one.

    A message that cannot be read is missing from it. A list that is cut off is none yet: it may be
    a file that is still being written, and comes in as a whole once it is.
    """
    values: list[Any] = []
    gaps: list[int] = []
    for item in found:
        if isinstance(item, Record):
            values.append(item.value)
        else:
            gaps.append(len(values))
    if not is_conversation(values):
        yield from found
        return
    place = found[0].place
    broken = [item for item in found if isinstance(item, Broken)]
    if broken and isinstance(broken[-1], _CutOff):
        yield Broken(place, broken[0].reason)
    else:
        yield from broken
        yield Record(place, values, gaps=tuple(gaps))


def _elements(text: str, position: int, name: str, *, closing: str) -> Iterator[Record | Broken]:
    """The values from `position` on, apart by commas in a list, else by nothing."""
    line, counted, record = 1, 0, 0
    while True:
        position = _skip(text, position)
        if position == len(text) or text[position] == closing:
            break
        record += 1
        line += text.count("\n", counted, position)
        counted = position
        place = Place(name, record, line)
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            end = _end_of(text, position) if closing else None
            if end is None:
                yield _CutOff(place, f"{_reason(error)}; nothing after it can be read")
                return
            yield Broken(place, _reason(error))
            position = end
        else:
            yield Record(place, value)
        position = _skip(text, position)
        if closing and text[position : position + 1] == ",":
            position += 1
    if closing and position == len(text):
        yield _CutOff(Place(name, record + 1, text.count("\n") + 1), "the list is not closed")


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _end_of(text: str, position: int) -> int | None:
    """Where the object or list that cannot be read ends; None when its brackets do not tell."""
    depth = 0
    for token in _TOKEN.finditer(text, position):
        if token.group() in ("{", "["):
            depth += 1
        elif token.group() in ("}", "]"):
            depth -= 1
            if depth <= 0:
                after = _skip(text, token.end())
                return token.end() if depth == 0 and text[after : after + 1] in (",", "]") else None
    return None


def _text(data: bytes) -> str:
    """Bytes as text; those that are no UTF-8 are kept apart, as what no text holds."""
    return data.decode("utf-8", "surrogateescape")


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


_DECODER = json.JSONDecoder(
    # What a broken tool wrote costs its value: NaN says nothing, and the rest is what it says.
    parse_constant=lambda _name: None,
    parse_int=_integer,
    strict=False,
)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    if isinstance(error, RecursionError):
        return TOO_DEEP
    return f"not JSON: {error}"
