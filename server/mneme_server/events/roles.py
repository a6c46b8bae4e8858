"""Who says what an event tells: its role in the conversation."""

from __future__ import annotations

from mneme_server.common.canonical import JsonObject
from mneme_server.events.event_types import Part, traits_of

_LONGEST = 64
_SAME = {"human": "user", "ai": "assistant", "model": "assistant"}
"""What frameworks call the two that nearly all of them have."""
_ASSISTANT = "assistant"


def role_of(event_type: str, payload: JsonObject) -> str:
    """Return the role that the payload names, in lower case; a model's answer is the assistant's.

    Empty when nobody said.
    """
    role = payload.get("role")
    if isinstance(role, str) and 0 < len(role) <= _LONGEST and role.isprintable():
        role = role.lower()
        return _SAME.get(role, role)
    return _ASSISTANT if traits_of(event_type).part is Part.REPLY else ""
