"""The names of event types, and all that the server concludes from them: their roles and kind, too.

A type is an open name: what is not in `KNOWN` is kept as it was given and treated as a custom event
is. Nothing else in the server compares a type with a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.corpus.document import MemoryKind

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}")
"""What can be a type, as the rules of `NewEvent.event_type` say it."""
_LONGEST = 64
_SAME = {"human": "user", "ai": "assistant", "model": "assistant"}
"""What frameworks call the two that nearly all of them have."""
_ASSISTANT = "assistant"
_LABEL = re.compile(r"[*\s]{0,3}(user|human|assistant|ai)[*\s]{0,3}:", re.IGNORECASE)
"""What a message begins with where transcripts are kept as text: "User: ..."."""


class EventType(StrEnum):
    """The known names. What they mean is told by the option of `NewEvent.event_type`."""

    SESSION_STARTED = "session_started"
    SESSION_ENDED = "session_ended"
    TOOL_CALL = "tool_call"
    TOOL_RESPONSE = "tool_response"
    TOOL_ERROR = "tool_error"
    LLM_CALL = "llm_call"
    LLM_RESPONSE = "llm_response"
    MESSAGE = "message"
    ERROR = "error"
    CUSTOM = "custom"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_GRANTED = "approval_granted"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    FORM_SUBMITTED = "form_submitted"
    FORM_COMPLETED = "form_completed"
    FORM_EXPIRED = "form_expired"
    COST_TRACKED = "cost_tracked"
    ALERT_TRIGGERED = "alert_triggered"
    ALERT_RESOLVED = "alert_resolved"


class RecallDefault(Enum):
    """When an event can be recalled whose caller did not say."""

    NEVER = "never"
    WITH_WORDS = "with words"
    """With a text of its own, or as an error by the words of its payload."""
    ALWAYS = "always"
    """By its text, or by one that is made of its other fields."""


class EventPart(Enum):
    """The part that an event plays in what a session did."""

    CALL = "call"
    """A tool was called."""
    ANSWER = "answer"
    """A tool answered, and so works."""
    FAILURE = "failure"
    """Something failed, whatever the severity."""
    TALK = "talk"
    """Somebody said something to somebody."""
    MODEL_CALL = "model call"
    """A model was called."""
    REPLY = "reply"
    """A model answered."""
    NOTE = "note"
    """The agent noted something in its own form; unknown types do too."""
    COST = "cost"
    """A cost was booked apart from what caused it."""
    RECOVERY = "recovery"
    """What had failed works again."""
    END = "end"
    """The session is over."""
    OTHER = "other"


class Traits(NamedTuple):
    """What is concluded from a type. `answers_call` tells that it belongs to the call of a tool
    before it."""

    part: EventPart
    recalled: RecallDefault = RecallDefault.ALWAYS
    answers_call: bool = False


KNOWN: Mapping[str, Traits] = MappingProxyType(
    {
        EventType.SESSION_STARTED: Traits(EventPart.OTHER, RecallDefault.NEVER),
        EventType.SESSION_ENDED: Traits(EventPart.END, RecallDefault.NEVER),
        EventType.TOOL_CALL: Traits(EventPart.CALL),
        EventType.TOOL_RESPONSE: Traits(EventPart.ANSWER, answers_call=True),
        EventType.TOOL_ERROR: Traits(EventPart.FAILURE, answers_call=True),
        EventType.LLM_CALL: Traits(EventPart.MODEL_CALL, RecallDefault.WITH_WORDS),
        EventType.LLM_RESPONSE: Traits(EventPart.REPLY, RecallDefault.WITH_WORDS),
        EventType.MESSAGE: Traits(EventPart.TALK),
        EventType.ERROR: Traits(EventPart.FAILURE),
        EventType.CUSTOM: Traits(EventPart.NOTE, RecallDefault.WITH_WORDS),
        EventType.APPROVAL_REQUESTED: Traits(EventPart.OTHER),
        EventType.APPROVAL_GRANTED: Traits(EventPart.OTHER),
        EventType.APPROVAL_DENIED: Traits(EventPart.OTHER),
        EventType.APPROVAL_EXPIRED: Traits(EventPart.OTHER),
        EventType.FORM_SUBMITTED: Traits(EventPart.OTHER),
        EventType.FORM_COMPLETED: Traits(EventPart.OTHER),
        EventType.FORM_EXPIRED: Traits(EventPart.OTHER),
        EventType.COST_TRACKED: Traits(EventPart.COST, RecallDefault.WITH_WORDS),
        EventType.ALERT_TRIGGERED: Traits(EventPart.OTHER),
        EventType.ALERT_RESOLVED: Traits(EventPart.RECOVERY),
    }
)


_OF_UNKNOWN = KNOWN[EventType.CUSTOM]


def traits_of(name: str) -> Traits:
    """Return what is concluded from a type; an unknown one is like a custom one."""
    return KNOWN.get(name, _OF_UNKNOWN)


def type_named(name: str) -> str:
    """Return the type that a caller means: a known name in any case is the known one."""
    if name in KNOWN:
        return name
    lower = name.lower()
    return lower if lower in KNOWN else name


def require_name(name: object) -> None:
    """Check that a stored type is one that could have been stored.

    Raises:
        ValueError: it is not.
    """
    if name not in KNOWN and not (isinstance(name, str) and NAME.fullmatch(name)):
        raise ValueError(f"its type {name!r:.40} is no name")


def playing(*parts: EventPart) -> frozenset[str]:
    """Return the known types that play one of these parts."""
    return frozenset(str(name) for name, traits in KNOWN.items() if traits.part in parts)


ERROR_TYPES = playing(EventPart.FAILURE)
"""What counts as an error whatever its severity."""
ALERT_TYPES = frozenset({EventType.ALERT_TRIGGERED.value, EventType.ALERT_RESOLVED.value})
"""What tells of alerts: no rule watches it."""
REPLIES = playing(EventPart.REPLY)
"""How a model answers."""
CALL_ANSWERS = frozenset(str(name) for name, traits in KNOWN.items() if traits.answers_call)
"""How a tool answers: well or not."""


def role_of(event_type: str, payload: JsonObject, text: str) -> str:
    """Return the role that the payload names, in lower case, else the label of a message's text.

    A model's answer is the assistant's. Empty when nobody said.
    """
    role = payload.get("role")
    if isinstance(role, str) and 0 < len(role) <= _LONGEST and role.isprintable():
        role = role.lower()
        return _SAME.get(role, role)
    part = traits_of(event_type).part
    label = _LABEL.match(text) if part is EventPart.TALK else None
    if label:
        role = label[1].lower()
        return _SAME.get(role, role)
    return _ASSISTANT if part is EventPart.REPLY else ""


EVENT = MemoryKind(
    "event",
    # A tool's call, answer or error stands for itself.
    spoken=playing(EventPart.TALK, EventPart.MODEL_CALL, EventPart.REPLY, EventPart.NOTE) | {""},
    failed=ERROR_TYPES,
    lasting=True,
    commits=True,
)
"""Recorded events. The category of one is its type in lower case."""
