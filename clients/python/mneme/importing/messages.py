"""One message of an OpenAI-style conversation as the events that it stands for."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from mneme._core.json_values import is_exact
from mneme._generated.choices import EventTypeName
from mneme.importing.outcomes import tool_error
from mneme.importing.plan import clean, clip, label, tidy
from mneme.importing.roles import role_in
from mneme.importing.wording import tool_text

# What becomes a field of the event, rather than part of its payload.
_MAPPED = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "function_call", "name", "refusal"}
)
_TIME_KEYS = ("timestamp", "created_at", "createdAt", "time", "ts")
_MESSAGE_ROLES = frozenset({"system", "developer", "user", "assistant"})
_TOOL_ROLES = frozenset({"tool", "function"})
# Seconds of 2001 to 2033, or milliseconds, as text; with 8 or 14 digits it may be a date.
_SINCE_1970 = re.compile(r"1\d{9}(?:\.\d+)?|1\d{12}")
_TOO_LATE_FOR_SECONDS = 100_000_000_000  # Larger numbers are milliseconds: 1973 in ms, 5138 in s.


def events_of(
    message: Any, call_names: dict[str, str], notes: Counter[str], kept: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The events of a message, as fields of `NewEvent` without ids.

    A text is a MESSAGE with its role in the payload; each tool call is a TOOL_CALL; a tool's
    answer is a TOOL_RESPONSE, or a TOOL_ERROR as `tool_error` decides. What else a message says
    (usage, reasoning) is in the payload of its first event. A message that says nothing stands
    for nothing, and one that is not understood is kept as it is.

    Args:
        message: the message.
        call_names: tools by the id of their call, to name answers that do not say whose they
            are; it grows as calls are met.
        notes: what had to be changed.
        kept: what was not understood.
    """
    if not isinstance(message, Mapping):
        yield raw("message", message, "message that is no object", notes, kept)
        return
    role = role_in(message)
    common = time_of(message)
    if role in _TOOL_ROLES:
        yield common | _answer(message, call_names, notes)
    elif role in _MESSAGE_ROLES:
        text = clean(text_of(message.get("content")) or text_of(message.get("refusal")), notes)
        rest = _rest(message, notes)
        calls = list(_calls(message, call_names, notes, kept))
        if text or (rest and not calls):
            yield common | _message(message, role, text, notes)
            rest = {}
        for call in calls:
            call["payload"] = {**rest, **call["payload"]}
            rest = {}
            yield common | call
    else:
        yield common | raw("message", message, f"role {message.get('role')!r}", notes, kept)


_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}")
_KNOWN = frozenset(get_args(EventTypeName))


def own_type(name: str) -> str:
    """The type of an event of another framework: its own name, when it can be one.

    A name that Mneme knows would say more than the other framework means by it.
    """
    return name if _TYPE.fullmatch(name) and name.lower() not in _KNOWN else "custom"


def raw(
    name: str, value: Any, what: str | None, notes: Counter[str], kept: Counter[str]
) -> dict[str, Any]:
    """What is not understood, or means nothing to a memory, as it is.

    Args:
        name: what happened, for the event's name.
        value: the JSON.
        what: what is unknown about it, to be counted; None when it is known.
        notes: what had to be changed.
        kept: where to count.
    """
    if what is not None:
        kept[what] += 1
    return {
        "event_type": own_type(name),
        "name": label(name, notes),
        "payload": {"raw": tidy(value, notes)},
        "searchable": False,
    }


def _message(
    message: Mapping[str, Any], role: str, text: str, notes: Counter[str]
) -> dict[str, Any]:
    payload: dict[str, Any] = {"role": role, **_rest(message, notes)}
    if isinstance(message.get("name"), str):
        payload["name"] = message["name"]
    shown = clip(text, notes)
    if shown != text:
        payload["content"] = text
    return {
        "event_type": "message",
        "text": shown,
        "payload": payload,
        # The server keeps out system prompts by itself; a developer's are the same.
        "searchable": False if role == "developer" else None,
    }


def _call(
    call: Any, call_names: dict[str, str], notes: Counter[str], kept: Counter[str]
) -> dict[str, Any]:
    function = call.get("function") or call.get("custom") or call if _is_object(call) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return raw("tool_call", call, "tool call without a name", notes, kept)
    name = label(function["name"], notes)
    call_id = label(call.get("id") or "", notes)
    if call_id:
        call_names[call_id] = name
    given = function.get("arguments", function.get("input"))
    return tool_call(name, call_id, given, notes)


def tool_call(name: str, call_id: str, given: Any, notes: Counter[str]) -> dict[str, Any]:
    """A tool's call, with its arguments as JSON where they are some."""
    arguments = None if given is None else parsed(given, notes)
    return {
        "event_type": "tool_call",
        "name": name,
        "call_id": call_id,
        "text": tool_text("tool_call", name, arguments),
        "payload": {} if arguments is None else {"arguments": arguments},
    }


def tool_answer(
    name: str,
    call_id: str,
    result: str,
    error: str | None,
    *,
    notes: Counter[str],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A tool's answer, or its error.

    Args:
        name: the tool; may be empty.
        call_id: its call.
        result: what it answered.
        error: the error's words; None when it is none.
        notes: what had to be changed.
        more: what else to keep in the payload.
    """
    text = clean(result, notes)
    payload: dict[str, Any] = {"result": parsed(text, notes)} if text else {}
    payload |= more or {}
    event: dict[str, Any] = {"name": name, "call_id": call_id, "payload": payload}
    if error is None:
        words = tool_text("tool_response", name, payload.get("result"))
        return event | {"event_type": "tool_response", "text": words}
    if payload.get("result") == error and len(error) <= len(clip(error, Counter())):
        del payload["result"]  # The error says it already.
    return event | {
        "event_type": "tool_error",
        "text": tool_text("tool_error", name, clean(error, notes)),
        "error": clip(clean(error, notes), notes),
    }


def _answer(
    message: Mapping[str, Any], call_names: Mapping[str, str], notes: Counter[str]
) -> dict[str, Any]:
    text = text_of(message.get("content"))
    call_id = label(message.get("tool_call_id") or "", notes)
    name = label(message.get("name") or call_names.get(call_id, ""), notes)
    error = tool_error(message, clean(text, Counter()))
    more = _rest(message, notes) if text else None
    return tool_answer(name, call_id, text, error, notes=notes, more=more)


def _calls(
    message: Mapping[str, Any],
    call_names: dict[str, str],
    notes: Counter[str],
    kept: Counter[str],
) -> Iterator[dict[str, Any]]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        yield raw("tool_calls", calls, "tool calls that are no list", notes, kept)
        calls = []
    legacy = message.get("function_call")
    for call in [*calls, legacy] if isinstance(legacy, Mapping) else calls:
        yield _call(call, call_names, notes, kept)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def text_of(content: Any) -> str:
    """A content as text: itself, its parts joined, or its JSON; pictures are only named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part, content)))
    return json.dumps(content, ensure_ascii=False)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        for key in ("text", "refusal", "content"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return f"[{part.get('type', 'part')}]"
    return ""


def parsed(value: Any, notes: Counter[str]) -> Any:
    """What a JSON text holds; the text itself when a Struct would change it, or it is none."""
    if not isinstance(value, str):
        return tidy(value, notes)
    if not value.lstrip().startswith(("{", "[")):
        return clean(value, notes)
    try:
        parsed = json.loads(value)
        return tidy(parsed, notes) if _is_exact(parsed) else clean(value, notes)
    except (ValueError, RecursionError):
        return clean(value, notes)


def _is_exact(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_exact, value.values()))
    if isinstance(value, list):
        return all(map(_is_exact, value))
    return not isinstance(value, int | float) or (is_exact(value) and math.isfinite(value))


def _rest(message: Mapping[str, Any], notes: Counter[str]) -> dict[str, Any]:
    """What else a message holds: its model, its usage, its reasoning."""
    skip = _MAPPED | frozenset(_TIME_KEYS)
    rest = {
        key: value
        for key, value in message.items()
        if key not in skip and value not in (None, "", [], {})
    }
    return dict(tidy(rest, notes))


def time_of(message: Mapping[str, Any]) -> dict[str, datetime]:
    """The message's own time, when it carries one; none is made up."""
    for key in _TIME_KEYS:
        value = message.get(key)
        time = None if value is None or isinstance(value, bool) else parse_time(value)
        if time is not None:
            return {"timestamp": time}
    return {}


def parse_time(value: Any) -> datetime | None:
    """A time given as ISO text (UTC unless it says otherwise) or as seconds or milliseconds."""
    try:
        if isinstance(value, str) and _SINCE_1970.fullmatch(value):
            value = float(value)
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            # In UTC, since what is of the year 0 or 10000 there is no time.
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and value >= 0:
            seconds = value / 1000 if value >= _TOO_LATE_FOR_SECONDS else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
