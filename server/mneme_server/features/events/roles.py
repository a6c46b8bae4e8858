"""Who says what an event tells: its role in the conversation."""

from __future__ import annotations

import re

from mneme_server.common.canonical import JsonObject
from mneme_server.features.events.event_types import Part, traits_of

_LONGEST = 64
_SAME = {"human": "user", "ai": "assistant", "model": "assistant"}
"""What frameworks call the two that nearly all of them have."""
_ASSISTANT = "assistant"
_LABEL = re.compile(r"[*\s]{0,3}(user|human|assistant|ai)[*\s]{0,3}:", re.IGNORECASE)
"""What a message begins with where transcripts are kept as text: "User: ..."."""


def role_of(event_type: str, payload: JsonObject, text: str) -> str:
    """Return the role that the payload names, in lower case, else the label of a message's text.

    A model's answer is the assistant's. Empty when nobody said.
    """
    role = payload.get("role")
    if isinstance(role, str) and 0 < len(role) <= _LONGEST and role.isprintable():
        role = role.lower()
        return _SAME.get(role, role)
    part = traits_of(event_type).part
    label = _LABEL.match(text) if part is Part.TALK else None
    if label:
        role = label[1].lower()
        return _SAME.get(role, role)
    return _ASSISTANT if part is Part.REPLY else ""
