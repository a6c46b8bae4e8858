"""Text for an agent's context: counted, cut, and laid out within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mneme.visible import QUOTED, visible, visible_line

# One token for each four letters or digits of a word, or part of four, and one for each other
# visible character: the server's own count, on the safe side of common tokenizers.
_PIECE = re.compile(r"[^\W_]{1,4}|[^\s]")
_LEAST_TOKENS = 24
_HEAD_TOKENS = 48
_ELLIPSIS = " …"
# What runs on for longer is no word: compact JSON, a path, or a text without blanks, as in Chinese.
_LONGEST_WORD = 32
# Scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)

STRUCTURED_HAS_ALL = "the structured form has all"
"""How to get the items that a listing leaves out, where a call cannot raise its budget."""


def count_tokens(text: str) -> int:
    """The tokens that a text takes, on the safe side of common tokenizers."""
    return len(_PIECE.findall(text))


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, with an ellipsis where something is missing."""
    for place, piece in enumerate(_PIECE.finditer(text)):
        if place == tokens:
            kept = text[: piece.start()]
            word = kept.rfind(" ") + 1
            if kept[-1:].isalnum() and len(kept) - word <= _LONGEST_WORD:
                kept = kept[:word] or kept
            return kept.rstrip() + _ELLIPSIS
    return text


def one_line(text: str) -> str:
    """A text without line breaks and repeated spaces."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Item:
    """Something to show.

    Args:
        head: what it is, in a few words.
        body: what it says; cut where there is no room.
    """

    head: str
    body: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as it fits a budget.

    Args:
        text: all of it.
        bodies: the items' bodies as shown; one for each item that is.
        omitted: items left out, from the end.
    """

    text: str
    bodies: Sequence[str]
    omitted: int


def listing(
    head: str,
    items: Sequence[Item],
    budget: int,
    *,
    notes: Sequence[str] = (),
    more: str = "raise tokenBudget",
) -> Listing:
    """Lay out a list within a budget of tokens: its head, as many items as fit, notes.

    The head says that the items are quoted; each is one line, with ">" before what it says.

    The items share the room; short ones leave theirs to long ones. The first is always shown, cut
    as far as it must be; one is left out where less than a few words of it would remain.

    Args:
        head: the line above; may be empty.
        items: what to list, the most important first.
        budget: tokens that the whole text may take, at least 100.
        notes: lines below, kept to a third of the budget.
        more: how to get the items that are left out.
    """
    head = _quoting(head) if items else head
    told = cut("\n".join(map(visible_line, notes)), budget // 3)
    left = budget - count_tokens(head) - count_tokens(told) - count_tokens(_left_out(99, more))
    lines: list[str] = []
    bodies: list[str] = []
    for place, item in enumerate(items):
        name = cut(visible_line(item.head), _HEAD_TOKENS)
        body = visible_line(item.body)
        name = f"{name} >" if body else name
        room = left - count_tokens(name)
        if lines and room < min(count_tokens(body), _LEAST_TOKENS):
            break
        share = max(left // (len(items) - place) - count_tokens(name), _LEAST_TOKENS)
        shown = cut(body, max(min(share, room) - 1, 1))
        lines.append(f"{name} {shown}".rstrip())
        bodies.append(shown)
        left -= count_tokens(lines[-1])
    omitted = len(items) - len(lines)
    parts = [head, *lines, _left_out(omitted, more) if omitted else "", told]
    return Listing("\n".join(part for part in parts if part), bodies, omitted)


def whole(
    head: str, items: Sequence[str], budget: int, *, closing: str, notes: Sequence[str], more: str
) -> Listing:
    """Lay out findings within a budget of tokens: as many whole ones as fit, in their order.

    A finding that is cut says something else than it did, and a weaker one does not take the place
    of a stronger one that is too long. Only the first is always shown, cut if it must be.

    Args:
        head: the line above.
        items: what to list, the strongest first.
        budget: tokens that the whole text may take, at least 100.
        closing: a line below that is always there; may be empty.
        notes: lines at the end, as many as there is room for then.
        more: how to get the items that are left out.
    """
    head = _quoting(head) if items else head
    left = budget - sum(map(count_tokens, (head, closing, _left_out(99, more))))
    lines: list[str] = []
    for item in map(visible_line, items):
        if lines and count_tokens(item) > left:
            break
        # The ellipsis is a token, too.
        lines.append(item if count_tokens(item) <= left else cut(item, max(left - 1, 1)))
        left -= count_tokens(lines[-1])
    omitted = len(items) - len(lines)
    parts = [head, *lines, _left_out(omitted, more) if omitted else "", closing]
    for note in notes:
        left -= count_tokens(note)
        if left >= 0:
            parts.append(note)
    return Listing("\n".join(part for part in parts if part), lines, omitted)


def quoted(text: str, budget: int, more: str) -> str:
    """A text of the server's from memory, as `fit` lays it out, under a line that says so."""
    return f"{QUOTED}\n{fit(visible(text), budget - count_tokens(QUOTED), more)}"


def quoted_lines(head: str, lines: Iterable[str]) -> str:
    """Facts that hold names from memory, each on one line, under a head that says so."""
    return "\n".join([_quoting(head), *map(visible_line, lines)])


def _quoting(head: str) -> str:
    """A head that says of what is below that it is quoted."""
    if not head:
        return QUOTED
    return f"{visible_line(head).rstrip(':')} ({QUOTED[0].lower()}{QUOTED[1:-1]}):"


def _left_out(count: int, more: str) -> str:
    return f"({count} more did not fit; {more}.)"


def fit(text: str, budget: int, more: str) -> str:
    """As many whole lines of a text as fit a budget, and a last line that says what is missing.

    A line that is too long is cut where much room is left for it.

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
        tokens = count_tokens(line)
        if tokens > left:
            if not kept or left > _LEAST_TOKENS:
                kept.append(cut(line, max(left - 1, 1)))
            break
        left -= tokens
        kept.append(line)
    return "\n".join([*kept, notice])


def shorten(value: Any, budget: int) -> Any:
    """JSON whose prose takes no more than a budget: the longest texts are cut first.

    Texts of one word (ids, names, times) stay, and so does the structure. What is written without
    blanks between its words is as many words as another text.
    """
    most = budget
    while most > _LEAST_TOKENS and sum(min(n, most) for n in _prose(value)) > budget:
        most = most * 3 // 4
    return _shortened(value, most)


def _prose(value: Any) -> Iterator[int]:
    """The tokens of each text of several words."""
    if isinstance(value, str):
        if _has_words(value):
            yield count_tokens(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _prose(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _prose(item)


def _has_words(text: str) -> bool:
    return " " in text or _UNSPACED.search(text) is not None


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return cut(value, most) if _has_words(value) else value
    if isinstance(value, Mapping):
        return {name: _shortened(inner, most) for name, inner in value.items()}
    return [_shortened(item, most) for item in value] if isinstance(value, list) else value


def paragraphs(parts: Iterable[str]) -> str:
    """The parts that say something, a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 session`, `2 sessions`."""
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def day(timestamp: str) -> str:
    """The date of an RFC 3339 time."""
    return timestamp[:10]
