"""What the plain tools share: whom a call is about, and how an item is named in every answer.

An item is named by its kind and its id, "memory 01M8ZQ", as the server's contexts name it, so that
whatever a model read of it can be handed back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from mneme.types import MemoryKindChoice
from pydantic import Field

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer
from mneme_mcp.text import cut, one_line

KINDS: tuple[str, ...] = get_args(MemoryKindChoice)
SHORT = 60
"""Tokens of a text where the whole is one call away."""
USER = 'Whom it is about, e.g. "ann".'
PROJECT = 'E.g. "shop-api".'
_IDS = (
    "memory_id", "memory_ids", "lesson_id", "reflection_id", "entry_id", "episode_id", "skill_id",
    "session_id",
)  # fmt: skip
AGENT = "The agent."  # Taken and not shown.
_NAMED = re.compile(
    rf"(?:id\s+)?(?:(?P<kind>{'|'.join(KINDS)})\s*[\s:/]\s*)?(?P<id>.+?)"
    r"(?:\s+of session\s+(?P<session>.+?))?(?:,\s+by\s.*)?",
    re.DOTALL | re.IGNORECASE,
)


class PlainArguments(SnakeArguments):
    """Arguments of a plain tool: an empty user or project is the adapter's, and never nobody."""

    hidden = ("agent_id",)
    whose = "named"


class ItemArguments(SnakeArguments):
    """Which item."""

    synonyms = dict.fromkeys(("memory_id", "item_id", "ids", "item", "memory"), "id")
    holders = dict.fromkeys(_IDS, "id")

    id: Annotated[
        str,
        Field(min_length=1, description='As answers name it, e.g. "memory 01M8ZQ".'),
    ]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a caller calls an item by.

    Args:
        id: its id.
        kind: its kind; empty where the caller did not say.
        session_id: of an event, the session; empty where the caller did not say.
    """

    id: str
    kind: str = ""
    session_id: str = ""

    def __str__(self) -> str:
        """As answers name it."""
        return named(self.kind, self.id, self.session_id)


def reference_of(text: str) -> Reference:
    """The item that a text names, as an answer did or by its bare id."""
    bare = text.strip().strip("`'\"[]()<>").strip() or text
    found = _NAMED.fullmatch(bare)
    if found is None:
        return Reference(bare)
    return Reference(found["id"], (found["kind"] or "").lower(), found["session"] or "")


def named(kind: str, item_id: str, session_id: str = "") -> str:
    """How answers name an item; an event with its session, by which alone it can be read."""
    name = f"{kind} {item_id}".lstrip()
    return f"{name} of session {session_id}" if kind == "event" and session_id else name


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    return cut(one_line(text), SHORT)


def superseded_ids(given: Sequence[str]) -> list[str]:
    """The ids of memories that a caller named in any way."""
    return [reference_of(one).id for one in given]


def scope(**texts: str) -> Mapping[str, Any]:
    """The offers of whom a call is about."""
    return {
        "user_id": texts.get("user_id", USER),
        "project": texts.get("project", PROJECT),
        "agent_id": Offer(AGENT),
    }
