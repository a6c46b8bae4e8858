"""Whose memory an adapter is for: the user, the agent and the project that its settings name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = ("user_id", "agent_id", "project")
"""The arguments that stand for whoever a call is about."""
_SAID = {"user_id": "the user", "agent_id": "the agent", "project": "the project"}
_SETTING = {"user_id": "--user", "agent_id": "--agent", "project": "--project"}

Own = Mapping[str, str]
"""What the settings name, by the argument; what they leave open is not in it."""


def of_context(context: Any) -> Own:
    """What the settings name, where pydantic checks arguments for an adapter."""
    own: Own = (context or {}).get("own", {})
    return own


def is_blank(value: Any) -> bool:
    """Whether an argument is a text that says nothing."""
    return isinstance(value, str) and not value.strip()


def nobody(name: str) -> str:
    """What is said of an empty argument that the settings do not fill either."""
    return (
        f"{name} is empty, and mneme-mcp was started without {_SETTING[name]}: name {_SAID[name]}, "
        f"or leave {name} out"
    )
