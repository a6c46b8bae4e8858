"""From an event as it was given to the event that is recorded: defaults, typed fields, text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.texts import composed
from mneme_server.features.events.event_types import (
    ERROR_TYPES,
    EventPart,
    RecallDefault,
    traits_of,
)
from mneme_server.features.events.model import Event, NewEvent, Severity

MAX_DERIVED_TEXT = 4_000
"""Characters of a text made from a payload: more than an embedding model reads, enough words for
the lexical index, and no copy of a whole result."""

_BETWEEN = ", "
_LEFT_OUT = " … "
"""Where the middle of words was left out."""
_BEGINNING = MAX_DERIVED_TEXT // 2 - len(_LEFT_OUT)

# The limits that the API sets for the typed fields. A payload is free: what no counter can hold
# stays there.
_MAX_TOKENS = 1e12
_MAX_COST_USD = 1e9
_MAX_DURATION_MS = 315_360_000 * 1e3


def normalize(new: NewEvent, *, event_id: str, now_us: int) -> Event:
    """Return the event to record, but for its session's agent and its place in the chain."""
    payload = new.payload
    name = new.name or (
        _text_of(payload, "name", "tool_name", "toolName", "tool") if payload else ""
    )
    error = new.error or (_text_of(payload, "error", "error_message") if payload else "")
    severity = new.severity or (Severity.ERROR if new.event_type in ERROR_TYPES else Severity.INFO)
    text = new.text
    searchable = new.searchable
    if searchable is None:
        searchable = _recalled_by_default(new, text, severity)
    # An error has its words even where it is not recalled: Reflect and summaries tell what it was.
    if not text and (searchable or severity >= Severity.ERROR):
        text = _derived_text(new.event_type, name, error, payload)
        searchable = searchable and bool(text)
    event = Event(
        id=event_id,
        session_id=new.session_id,
        agent_id=new.agent_id,
        event_type=new.event_type,
        severity=severity,
        timestamp_us=now_us if new.timestamp_us is None else new.timestamp_us,
        text=text,
        name=composed(name)[:200],
        call_id=new.call_id,
        error=error,
        model=new.model,
        input_tokens=new.input_tokens,
        output_tokens=new.output_tokens,
        cost_usd=new.cost_usd,
        duration_us=new.duration_us,
        payload_json=canonical_json(payload) if payload else "{}",
        metadata_json=canonical_json(new.metadata) if new.metadata else "{}",
        searchable=searchable,
        recorded_us=now_us,
    )
    if payload:
        _fill_from_payload(event, payload)
    return event


def _recalled_by_default(new: NewEvent, text: str, severity: Severity) -> bool:
    traits = traits_of(new.event_type)
    if traits.recalled is RecallDefault.NEVER:
        return False
    if traits.recalled is RecallDefault.WITH_WORDS:
        return bool(text) or severity >= Severity.ERROR
    # A system prompt opens every session with the same words; recalling it helps nobody.
    return not (traits.part is EventPart.TALK and new.payload.get("role") == "system")


def _fill_from_payload(event: Event, payload: JsonObject) -> None:
    """Read typed fields that were not given from the payload's keys of the same name."""
    if not event.call_id:
        event.call_id = _text_of(payload, "call_id", "callId", "tool_call_id")[:200]
    if not event.model:
        event.model = _text_of(payload, "model")[:200]
    usage = payload.get("usage")
    sources = (payload, usage) if isinstance(usage, Mapping) else (payload,)
    for source in sources:
        event.input_tokens = event.input_tokens or _count_of(
            source, "input_tokens", "inputTokens", "prompt_tokens"
        )
        event.output_tokens = event.output_tokens or _count_of(
            source, "output_tokens", "outputTokens", "completion_tokens"
        )
    if not event.cost_usd:
        event.cost_usd = _number_of(payload, _MAX_COST_USD, "cost_usd", "costUsd")
    if event.duration_us is None:
        milliseconds = _number_of(
            payload, _MAX_DURATION_MS, "duration_ms", "durationMs", "latency_ms", "latencyMs"
        )
        event.duration_us = round(milliseconds * 1_000) if milliseconds else None


def _derived_text(event_type: str, name: str, error: str, payload: JsonObject) -> str:
    """Return a text that names the event, its tool and what is in it; empty if nothing is."""
    words = error or _text_of(payload, "text", "content", "message", "result", "output")
    body = words
    if not body and payload:
        rest = payload.get("arguments", payload.get("result", payload))
        body = _flat(rest if isinstance(rest, Mapping) else {"": rest})
    if traits_of(event_type).part is EventPart.TALK:
        text = body
    else:
        parts = [part for part in (name, body) if part]
        text = ": ".join([event_type, *parts]) if parts else ""
    return _both_ends(text) if words else text[:MAX_DERIVED_TEXT]


def _both_ends(text: str) -> str:
    """Return a text without the middle that there is no room for: a trace and a program's output
    say at their end what went wrong."""
    if len(text) <= MAX_DERIVED_TEXT:
        return text
    return text[:_BEGINNING] + _LEFT_OUT + text[_BEGINNING + len(_LEFT_OUT) - MAX_DERIVED_TEXT :]


def _flat(value: object) -> str:
    """Return JSON as words, "origin JFK, cabin economy": quotes and braces are noise to a model.

    It reads no further than its words go: a payload may have millions of values.
    """
    parts: list[str] = []
    length = 0
    for key, item in _leaves("", value):
        parts.append(f"{key} {item}" if key else str(item))
        length += len(parts[-1]) + len(_BETWEEN)
        if length > MAX_DERIVED_TEXT:
            break
    return _BETWEEN.join(parts)[:MAX_DERIVED_TEXT]


def _leaves(key: str, item: object) -> Iterator[tuple[str, object]]:
    """Yield the values of JSON, each under the nearest key above it; nulls are left out."""
    if isinstance(item, Mapping):
        for inner_key, inner in item.items():
            yield from _leaves(str(inner_key), inner)
    elif isinstance(item, list | tuple):
        for inner in item:
            yield from _leaves(key, inner)
    elif item is not None:
        yield key, item


def _text_of(source: JsonObject, *keys: str) -> str:
    for key in keys:
        value = source.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, Mapping) and isinstance(value.get("message"), str):
            return str(value["message"])
    return ""


def _number_of(source: Mapping[str, object], limit: float, *keys: str) -> float:
    """Return the first number above 0 and up to `limit`; 0 without one."""
    for key in keys:
        value = source.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= limit:
            return float(value)
    return 0.0


def _count_of(source: Mapping[str, object], *keys: str) -> int:
    return int(_number_of(source, _MAX_TOKENS, *keys))
