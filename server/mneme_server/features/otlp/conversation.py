"""Conversations in spans: what was said to a model and by it, in whichever shape it is told.

All that a stranger sends is made fit to be stored: Unicode, and numbers that are finite and exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from mneme_server.common.canonical import Json, canonical_json

MAX_DEPTH = 24
"""Levels of a value that are kept; payloads of events may have 32."""
MAX_TEXT = 65_536
"""Characters of a text or an error that an event may have."""
MAX_EXACT_INTEGER = 2**53
"""Beyond it a number of an event's payload, which is a double, does not hold every integer."""
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "humanmessage": "user",
    "systemmessage": "system",
    "toolmessage": "tool",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_KNOWN_ROLES = frozenset({"system", "user", "assistant", "tool", *_ROLES})
_CALLS = frozenset({"tool_call", "tool-call", "tool_use", "function_call"})
_ANSWERS = frozenset({"tool_call_response", "tool-result", "tool_result", "function_call_output"})
_SILENT = frozenset({"reasoning", "thinking", "redacted_thinking", "redacted-reasoning"})
_WRAPPERS = ("message", "message_content", "tool_call", "prompt", "completion", "document")
"""Names that hold one thing in flattened attributes."""
_DEPTH = 12
"""Levels of lists and wrappers that are looked through."""


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


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A model is told what a tool answered."""

    call_id: str
    name: str
    result: Json


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message to a model or of it: a text, calls of tools, or answers of tools.

    Messages come as lists of messages in the form of OpenTelemetry, OpenAI, Anthropic, LangChain or
    the Vercel AI SDK, as JSON or flattened into attributes. All of them become
    `ConversationMessage`.
    """

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()

    def after(self, before: str) -> str:
        """Return the hash of the conversation up to this message, from that of what came before.

        A model is told the whole conversation at each call: by these hashes a message is known
        again wherever it stands in the same place of the same conversation.
        """
        content = [
            before,
            self.role,
            self.text,
            [[call.id, call.name, call.arguments] for call in self.calls],
            [[answer.call_id, answer.result] for answer in self.answers],
        ]
        return sha256(canonical_json(content).encode("utf-8", "surrogatepass")).hexdigest()


def said_in(value: Json, role: str) -> list[ConversationMessage]:
    """Return the messages that an attribute holds; `role` is that of those that name none."""
    found = _said(read_json(value), role, _DEPTH)
    return [one for one in found if one.text or one.calls or one.answers]


def unflattened(attributes: Mapping[str, Json], prefix: str) -> Json:
    """Return what was flattened into attributes that begin with `prefix`: a list, or None."""
    tree: dict[str, Json] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        *path, last = name[len(prefix) :].split(".")
        if not (path or [last])[0].isdigit():
            continue  # Another attribute, whose name begins alike.
        place = tree
        for step in path[:_DEPTH]:
            inner = place.get(step)
            if not isinstance(inner, dict):
                inner = place[step] = {}
            place = inner
        place[last] = value
    return _lists(tree) if tree else None


def read_json(value: Json) -> Json:
    """Return what a text says that is JSON, an object or a list; anything else as it is."""
    if isinstance(value, str) and value[:1] in "[{" and value.rstrip()[-1:] in "]}":
        try:
            found: Json = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            return value
        return clean(found)
    return value


def text_of(value: Json) -> str:
    """Return a value as text: a text as it is, nothing as nothing, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value)


def _lists(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return value
    if value and all(key.isascii() and key.isdigit() and len(key) < 7 for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(inner) for key, inner in value.items()}


def _said(value: Json, role: str, depth: int) -> Iterator[ConversationMessage]:
    if depth <= 0 or value is None:
        return
    if isinstance(value, str):
        yield ConversationMessage(role, value.strip())
    elif isinstance(value, Sequence):
        if _is_parts(value):
            yield _message({"content": value}, role)
        else:
            for item in value:
                yield from _said(item, role, depth - 1)
    elif isinstance(value, Mapping):
        yield from _said_in_object(value, role, depth)


def _said_in_object(
    value: Mapping[str, Json], role: str, depth: int
) -> Iterator[ConversationMessage]:
    kwargs, kinds = value.get("kwargs"), value.get("id")
    if isinstance(kwargs, Mapping) and isinstance(kinds, Sequence) and kinds:  # LangChain's dump.
        yield _message(kwargs, _role(kinds[-1], role))
    elif _is_message(value):
        yield _message(value, role)
    elif isinstance(value.get("messages"), Sequence):
        yield from _said(value.get("system"), "system", depth - 1)
        yield from _said(read_json(value["messages"]), role, depth - 1)
    else:
        for name in ("choices", "generations", "output", "outputs", "input", "inputs", "system",
                     *_WRAPPERS, "text", "content", "question", "query", "answer"):  # fmt: skip
            if value.get(name):
                yield from _said(
                    read_json(value[name]), "system" if name == "system" else role, depth - 1
                )
                if name not in ("system", "text"):
                    return


def _is_message(value: Mapping[str, Json]) -> bool:
    return (
        isinstance(value.get("role"), str)
        or "parts" in value
        or "tool_calls" in value
        or (str(value.get("type", "")).lower() in _KNOWN_ROLES and "content" in value)
    )


def _is_parts(items: Sequence[Json]) -> bool:
    return bool(items) and all(
        isinstance(item, Mapping)
        and "role" not in item
        and item.get("type") in {"text", *_CALLS, *_ANSWERS, *_SILENT}
        for item in items
    )


def _role(given: Json, default: str) -> str:
    if not isinstance(given, str) or not given:
        return default
    lower = given.lower()
    return _ROLES.get(lower, lower if lower in _KNOWN_ROLES else default)


def _message(value: Mapping[str, Json], default: str) -> ConversationMessage:
    kind = value.get("type")
    is_role = isinstance(kind, str) and kind.lower() in _KNOWN_ROLES
    role = _role(value.get("role") or (kind if is_role else None), default)
    texts: list[str] = []
    calls: dict[str, ToolCall] = {}
    answers: list[ToolAnswer] = []
    content = next((value[n] for n in ("parts", "content", "contents") if value.get(n)), None)
    found = read_json(content)
    if isinstance(found, Mapping) or (isinstance(found, Sequence) and not isinstance(found, str)):
        for part in [found] if isinstance(found, Mapping) else found:
            _take_part(part, texts, calls, answers)
    if not (texts or calls or answers) and content is not None:
        texts.append(text_of(content) if isinstance(content, str) else "")
    for given in _listed(value.get("tool_calls")) + _listed(value.get("function_call")):
        _add_call(given, calls)
    text = "\n".join(one for one in texts if one).strip()
    if role == "tool" and not answers:
        name = value.get("name")
        call_id = value.get("tool_call_id") or value.get("toolCallId") or value.get("id")
        answers.append(ToolAnswer(text_of(call_id), text_of(name), text))
        text = ""
    return ConversationMessage(role, text, tuple(calls.values()), tuple(answers))


def _listed(value: Json) -> list[Json]:
    value = read_json(value)
    if isinstance(value, Mapping):
        return [value]
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _take_part(
    part: Json, texts: list[str], calls: dict[str, ToolCall], answers: list[ToolAnswer]
) -> None:
    if isinstance(part, str):
        texts.append(part)
        return
    part = _unwrapped(part)
    if not isinstance(part, Mapping):
        return
    kind = part.get("type")
    if kind in _CALLS:
        _add_call(part, calls)
    elif kind in _ANSWERS:
        answers.append(_answer(part))
    elif kind not in _SILENT:
        text = part.get("text", part.get("content"))
        if isinstance(text, str):
            texts.append(text)


def _unwrapped(value: Json) -> Json:
    if isinstance(value, Mapping) and len(value) == 1:
        (name,) = value
        if name in _WRAPPERS and isinstance(value[name], Mapping):
            return value[name]
    return value


def _add_call(value: Json, calls: dict[str, ToolCall]) -> None:
    """Add a call to those of a message, unless it is there: some tell each in two places. They are
    kept by what they say, because a stranger's message may hold very many."""
    call = _call(value)
    if call is not None:
        calls.setdefault(canonical_json([call.id, call.name, call.arguments]), call)


def _call(value: Json) -> ToolCall | None:
    value = _unwrapped(value)
    if not isinstance(value, Mapping):
        return None
    function = value.get("function")
    inner = function if isinstance(function, Mapping) else value
    name = inner.get("name") or value.get("toolName") or value.get("tool_name")
    if not isinstance(name, str) or not name:
        return None
    arguments = next(
        (inner[n] for n in ("arguments", "args", "input", "parameters") if n in inner), None
    )
    call_id = value.get("id") or value.get("toolCallId") or value.get("call_id")
    return ToolCall(text_of(call_id), name, read_json(arguments))


def _answer(part: Mapping[str, Json]) -> ToolAnswer:
    call_id = next(
        (part[n] for n in ("id", "toolCallId", "tool_use_id", "call_id") if part.get(n)), None
    )
    result = next(
        (part[n] for n in ("response", "result", "output", "content") if part.get(n) is not None),
        None,
    )
    if isinstance(result, Mapping) and set(result) == {"type", "value"}:  # The AI SDK's, typed.
        result = result["value"]
    name = part.get("name") or part.get("toolName")
    return ToolAnswer(text_of(call_id), text_of(name), text_of(result).strip())
