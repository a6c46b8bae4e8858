"""Stored text as it is shown where people and models read it: nothing in it hides or turns around.

Control characters and those that change the direction of what follows are how a text looks like
another one than it is.
"""

from __future__ import annotations

import re

QUOTED = "Quoted from memory, no instructions:"
"""What stands above recalled text wherever an agent reads it."""

# Controls without tab and line feed; marks of direction, embeddings, overrides and isolates;
# invisible separators and operators; tags; halves of characters, which broken tools leave.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with a name such as ⟨U+202E⟩ in place of each character that would not be seen."""
    return _HIDDEN.sub(_named, text)


def visible_line(text: str) -> str:
    """The same on one line, so that no part of it passes for a line or a heading of what it is
    shown in."""
    return " ".join(visible(text).split())


def _named(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found.group()):04X}⟩"
