"""How names are spelled: the API says `session_id`, most of MCP's world says `sessionId`."""

from __future__ import annotations

import re

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def to_snake(name: str) -> str:
    """`sessionId` as `session_id`; other names as they are."""
    return _HUMP.sub("_", name).lower()


def to_camel(name: str) -> str:
    """`session_id` as `sessionId`; other names as they are."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
