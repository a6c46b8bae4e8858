"""Reading spans by the table in `vocabulary.py`."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.common.canonical import Json
from mneme_server.common.texts import composed, is_blank
from mneme_server.features.otlp.conversation import (
    Said,
    ToolCall,
    read_json,
    said_in,
    text_of,
    unflattened,
)
from mneme_server.features.otlp.model import Attributes, Span, SpanKind
from mneme_server.features.otlp.vocabulary import (
    BY_FIELD,
    DETAIL_EVENTS,
    KINDS,
    MESSAGE_EVENTS,
    Field,
)

_KIND_OF = [
    (row.attribute, {value: kind for kind, values in row.values.items() for value in values})
    for row in KINDS
]
MAX_ID = 200
_MAX_TOKENS = 10**12
_MAX_COST_USD = 1e9


def kind_of(attributes: Attributes) -> SpanKind | None:
    """Return what a span is by its attributes; None when they do not say, or it is another thing,
    like the computing of an embedding."""
    for attribute, kinds in _KIND_OF:
        kind = kinds.get(str(attributes.get(attribute, "")))
        if kind is not None:
            return kind
    return None


def value_of(attributes: Attributes, field: Field) -> Json:
    """Return what the first attribute says that tells this; None when none does."""
    for name in BY_FIELD[field]:
        found = unflattened(attributes, name) if name.endswith(".") else attributes.get(name)
        if found is not None and found != "":
            return found
    return None


def name_of(attributes: Attributes, field: Field) -> str:
    """Return an id or a name, as the API takes it; empty when there is none."""
    value = value_of(attributes, field)
    return as_id(text_of(value)) if isinstance(value, str | int | float) else ""


def as_id(text: str) -> str:
    """Return a text as ids are kept, without what they may not hold, cut where it is too long; ""
    if nothing of it can be seen."""
    kept = "".join(c for c in composed(text) if c >= " " and c != "\x7f").strip()[:MAX_ID]
    return "" if is_blank(kept) else kept


def result_of(attributes: Attributes) -> Json:
    """Return what a tool answered; of a message that holds the answer, its content."""
    value = read_json(value_of(attributes, Field.RESULT))
    message = value.get("data", value) if isinstance(value, dict) else value
    if isinstance(message, dict) and "tool_call_id" in message and "content" in message:
        return read_json(message["content"])
    return value


def tokens_of(attributes: Attributes, field: Field) -> int:
    """Return a number of tokens; 0 when it is not told or none."""
    return int(_number_of(attributes, field, _MAX_TOKENS))


def cost_of(attributes: Attributes) -> float:
    """Return the cost in USD; 0 when it is not told."""
    return float(_number_of(attributes, Field.COST, _MAX_COST_USD))


def _number_of(attributes: Attributes, field: Field, most: float) -> int | float:
    """Return a number that something counts or costs; 0 when it is none, as true and false are."""
    value = value_of(attributes, field)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most:
        return value
    return 0


def error_of(span: Span) -> str:
    """Return what went wrong, where the span says that something did; empty when it does not."""
    for note in span.notes:
        if note.name == "exception" and span.failed:
            said = note.attributes.get("exception.message") or note.attributes.get("exception.type")
            if said:
                return text_of(said)
    if span.failed and span.error:
        return span.error
    kind = value_of(span.attributes, Field.ERROR)
    if kind:
        return text_of(kind)
    return "it failed, and did not say why" if span.failed else ""


def gathered(span: Span, logs: Sequence[Span]) -> Attributes:
    """Return a span's attributes with those of the events that tell its details."""
    found: dict[str, Json] = {}
    for note in span.notes:
        if note.name in DETAIL_EVENTS:
            found |= note.attributes
    for log in logs:
        if log.name in DETAIL_EVENTS:
            found |= log.attributes
            if isinstance(log.body, dict):
                found |= log.body
    return found | dict(span.attributes) if found else span.attributes


def conversation(span: Span, logs: Sequence[Span]) -> tuple[list[Said], list[Said]]:
    """Return what a model was told and what it said, of a span and the log records in it."""
    attributes = gathered(span, logs)
    told = said_in(value_of(attributes, Field.SYSTEM), "system")
    told += said_in(value_of(attributes, Field.INPUT), "user")
    said = said_in(value_of(attributes, Field.OUTPUT), "assistant")
    if not said:
        said = _from_parts(attributes)
    if not told and not said:
        told, said = _from_events(span, logs)
    return told, said


def _from_parts(attributes: Attributes) -> list[Said]:
    """Return the answer of a model where its text and its calls are told apart."""
    text = value_of(attributes, Field.OUTPUT_TEXT)
    calls: list[ToolCall] = []
    for one in said_in({"tool_calls": value_of(attributes, Field.OUTPUT_CALLS)}, "assistant"):
        calls += one.calls
    said = Said("assistant", text_of(text).strip(), tuple(calls))
    return [said] if said.text or said.calls else []


def _from_events(span: Span, logs: Sequence[Span]) -> tuple[list[Said], list[Said]]:
    """Return what is told by events, or log records, that hold one message each."""
    found: list[tuple[int, str, Json]] = [
        (note.time_us, note.name, dict(note.attributes)) for note in span.notes
    ]
    found += [
        (log.start_us, log.name, log.body if log.body else dict(log.attributes)) for log in logs
    ]
    told: list[Said] = []
    said: list[Said] = []
    for _time, name, given in sorted(found, key=lambda one: one[0]):
        role = MESSAGE_EVENTS.get(name)
        if role is None:
            continue
        content = given
        if isinstance(given, dict) and "gen_ai.event.content" in given:
            content = given["gen_ai.event.content"]
        (said if name == "gen_ai.choice" else told).extend(said_in(content, role))
    return told, said
