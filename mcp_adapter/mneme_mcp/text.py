"""Text for an agent's context: counted, cut, and laid out within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# One token for each four letters or digits of a word, or part of four, and one for each other
# visible character: the server's own count, on the safe side of common tokenizers.
_PIECE = re.compile(r"\w{1,4}|[^\w\s]")
_LEAST_TOKENS = 24
_ELLIPSIS = " …"


def count_tokens(text: str) -> int:
    """The tokens that a text takes, on the safe side of common tokenizers."""
    return len(_PIECE.findall(text))


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, with an ellipsis where something is missing."""
    for place, piece in enumerate(_PIECE.finditer(text)):
        if place == tokens:
            kept = text[: piece.start()]
            whole = kept[: kept.rfind(" ") + 1] if text[piece.start() - 1].isalnum() else kept
            return (whole or kept).rstrip() + _ELLIPSIS
    return text


def one_line(text: str) -> str:
    """A text without line breaks and repeated spaces."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Item:
    """Something to show.

    Args:
        head: what it is, in a few words; never cut.
        body: what it says; cut where there is no room.
    """

    head: str
    body: str


@dataclass(frozen=True, slots=True)
class Laid:
    """What fits a budget.

    Args:
        lines: the items that fit, one line each.
        bodies: their bodies as shown.
        omitted: items left out, from the end.
    """

    lines: Sequence[str]
    bodies: Sequence[str]
    omitted: int


def lay_out(items: Sequence[Item], budget: int) -> Laid:
    """Show as many items as fit, in their order, sharing the room between them.

    Short bodies leave their room to long ones. The first item is always shown, cut as far as it
    must be; an item is left out where less than a few words of it would remain.
    """
    lines: list[str] = []
    bodies: list[str] = []
    left = budget
    for place, item in enumerate(items):
        head = count_tokens(item.head)
        body = one_line(item.body)
        share = max(left // (len(items) - place), _LEAST_TOKENS * 2)
        room = min(share, left) - head
        if lines and room < min(count_tokens(body), _LEAST_TOKENS):
            break
        shown = cut(body, max(room, _LEAST_TOKENS))
        lines.append(f"{item.head} {shown}".rstrip())
        bodies.append(shown)
        left -= count_tokens(lines[-1])
    return Laid(lines, bodies, len(items) - len(lines))


def fit(text: str, budget: int, more: str) -> str:
    """As many whole lines of a text as fit a budget, and a last line that says what is missing.

    Args:
        text: the text.
        budget: tokens that may be taken.
        more: where to find the rest, for the last line.
    """
    if count_tokens(text) <= budget:
        return text
    notice = f"… cut to {budget} tokens; {more}."
    left = budget - count_tokens(notice)
    kept: list[str] = []
    for line in text.splitlines():
        left -= count_tokens(line)
        if left < 0:
            if not kept:
                kept.append(cut(line, max(left + count_tokens(line), 1)))
            break
        kept.append(line)
    return "\n".join([*kept, notice])


def paragraphs(parts: Iterable[str]) -> str:
    """The parts that say something, a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def counted(number: int, thing: str) -> str:
    """`1 session`, `2 sessions`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def day(timestamp: str) -> str:
    """The date of an RFC 3339 time."""
    return timestamp[:10]
