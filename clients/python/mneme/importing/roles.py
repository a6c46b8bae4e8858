"""Who says what in a conversation, by the names that tools and frameworks have for them."""

from __future__ import annotations

from typing import Any

_SAME = {
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
}


def role_in(message: Any) -> str:
    """The role that a message names, in lower case, by OpenAI's name; "" when it names none."""
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        return ""
    role = role.strip().lower()
    return _SAME.get(role, role)
