"""What an import is going to send, and the limits that it keeps."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from google.protobuf.struct_pb2 import Struct

from mneme._core.convert import fill
from mneme._core.fitting import json_limits, rules
from mneme._core.json_values import is_exact
from mneme.importing.reading import Place
from mneme.messages import Lesson, NewEvent, NewGrade, StartSessionRequest

# Limits of the API.
_EVENT: Mapping[str, Any] = NewEvent.DESCRIPTOR.fields_by_name
_SESSION: Mapping[str, Any] = StartSessionRequest.DESCRIPTOR.fields_by_name
_TAGS = rules(_SESSION["tags"]).repeated
MAX_TEXT: int = rules(_EVENT["text"]).string.max_len
MAX_LABEL: int = rules(_EVENT["name"]).string.max_len
MAX_TAG: int = _TAGS.items.string.max_len
MAX_TAGS: int = _TAGS.max_items
MAX_PAYLOAD_BYTES: int = json_limits(_EVENT["payload"]).max_bytes
MAX_METADATA_BYTES: int = json_limits(_EVENT["metadata"]).max_bytes
MAX_DEPTH: int = json_limits(_EVENT["payload"]).max_depth
# No JSON takes more than this times its own bytes as a Struct: "[0,0]" needs 11 for each "0,".
_GROWTH = 16
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

CUT = "texts cut to what the server keeps"
REPLACED = "texts with characters replaced that Unicode text cannot hold"
REPEATED = "lines that only repeat what stands elsewhere"


class UnusableError(Exception):
    """A record that cannot be imported; the message says why."""


@dataclass(slots=True)
class Planned:
    """A session, or a part of one, that goes in together.

    Args:
        place: where it was read.
        start: the arguments of `start_session`; None when only events are sent.
        events: its events, in order.
        end: the arguments of `end_session`; None when it is not ended.
        grades: what others said of how sessions turned out.
        lessons: lessons that were read with it.
        notes: what had to be changed to fit, and how often.
        kept: what the reader does not know and kept as it is, and how often.
        shared: its events' ids are the source's own, and unique in the world: an event that
            another session already has is the same one, repeated by a resumed session.
        wider: plans the same under another session's id, made of more of its content; for a
            record whose id turns out to be another's. None when there is nothing more.
    """

    place: Place
    start: dict[str, Any] | None = None
    events: list[NewEvent] = field(default_factory=list)
    end: dict[str, Any] | None = None
    grades: list[NewGrade] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    shared: bool = False
    wider: Callable[[], Planned | None] | None = None

    def add(self, session_id: str, event_id: str, fields: Mapping[str, Any]) -> NewEvent:
        """Add an event; its payload and metadata are cut to what the server keeps.

        Args:
            session_id: its session.
            event_id: its id, always the same for the same place in the source.
            fields: the other fields of `NewEvent`; the payload is JSON.
        """
        payload = fit(fields.get("payload") or {}, MAX_PAYLOAD_BYTES, self.notes) or None
        metadata = fit(fields.get("metadata") or {}, MAX_METADATA_BYTES, self.notes) or None
        ids = {"id": identifier(event_id), "session_id": session_id}
        event = NewEvent()
        fill(event, {**fields, **ids, "payload": payload, "metadata": metadata})
        self.events.append(event)
        return event


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the caller says of everything that is imported; it wins over what a record says."""

    agent_id: str | None = None
    project: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()


def mapping_at(facts: Any, key: str) -> Mapping[str, Any]:
    """The JSON object under a key; an empty one when there is none."""
    value = facts.get(key) if isinstance(facts, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def digest(value: Any) -> str:
    """A hash of a JSON value, whatever its layout and the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def identifier(text: str) -> str:
    """An id that the server takes, and that two different texts do not share."""
    shown = "".join(c if c.isprintable() else "-" for c in text.encode(errors="replace").decode())
    if shown == text and len(text) <= MAX_LABEL:
        return text
    return f"{shown[:160]}-{digest(text)[:20]}"


def clean(text: str, notes: Counter[str]) -> str:
    """A text without NUL and halves of surrogate pairs, which broken tools leave in logs."""
    if text.isascii() and "\x00" not in text:
        return text
    kept = text.replace("\x00", _REPLACEMENT).encode("utf-16", "surrogatepass")
    cleaned = kept.decode("utf-16", "replace")
    if cleaned != text:
        notes[REPLACED] += 1
    return cleaned


def clip(text: str, notes: Counter[str], limit: int = MAX_TEXT) -> str:
    """A text that the server keeps whole."""
    if len(text) <= limit:
        return text
    notes[CUT] += 1
    return text[: limit - 1] + "…"


def label(value: Any, notes: Counter[str], limit: int = MAX_LABEL) -> str:
    """A name or id on one line, at most `limit` characters."""
    text = clean(str(value), notes)
    return clip(
        " ".join("".join(c if c.isprintable() else " " for c in text).split()), notes, limit
    )


def tidy(value: Any, notes: Counter[str]) -> Any:
    """JSON that a Struct holds exactly: texts cleaned, too large numbers as text."""
    if isinstance(value, str):
        return clean(value, notes)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if _is_held(value) else str(value)
    if isinstance(value, list):
        return [tidy(item, notes) for item in value]
    if isinstance(value, dict):
        return {clean(str(key), notes): tidy(item, notes) for key, item in value.items()}
    return value


def exact(value: Any) -> Any:
    """JSON with the numbers as text that a message's free JSON would round."""
    return tidy(value, Counter())


def _is_held(number: float) -> bool:
    """Whether a Struct holds a number: JSON can also say 1e999."""
    return is_exact(number) and math.isfinite(number)


def fit(value: Mapping[str, Any], limit: int, notes: Counter[str]) -> dict[str, Any]:
    """A JSON object within the server's size and depth; what is too much is cut, and noted.

    Values that are nested too deep become their JSON text; then the longest values are cut
    until the object fits.
    """
    fitted = {
        key: item if _fits_depth(item, MAX_DEPTH - 1) else json.dumps(item)
        for key, item in value.items()
    }
    if len(json.dumps(fitted)) * _GROWTH <= limit:
        return fitted  # Nearly all of them, and this is far quicker than to measure them.
    sizes = {key: _encoded_size(key, item) for key, item in fitted.items()}
    size = sum(sizes.values())
    if size <= limit:
        return fitted
    notes[CUT] += 1
    # The longest first; of those that are as long as each other, the one that comes first.
    longest = [
        (-len(json.dumps(item)), place, key) for place, (key, item) in enumerate(fitted.items())
    ]
    heapify(longest)
    while size > limit:
        _, place, key = heappop(longest)
        size -= sizes[key]
        text = fitted[key]
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        if len(text) < MAX_LABEL:
            del fitted[key]  # Thousands of small values: drop them one by one.
            continue
        fitted[key] = text[: len(text) // 2] + "…"
        sizes[key] = _encoded_size(key, fitted[key])
        size += sizes[key]
        heappush(longest, (-len(json.dumps(fitted[key])), place, key))
    return fitted


def _encoded_size(key: str, value: Any) -> int:
    """The bytes that a value takes in a Struct, which is as long as its values together."""
    struct = Struct()
    struct.update({key: value})
    return struct.ByteSize()


def _fits_depth(value: Any, levels: int) -> bool:
    """Whether a JSON value has no more levels of nesting; it is not followed further down."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_fits_depth(item, levels - 1) for item in inner)
