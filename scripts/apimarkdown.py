"""Markdown as the reference of the API is written in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE_OR_MARKUP = re.compile(r"(`[^`]*`)|([<*])")
_SENTENCE = re.compile(r".*?[.?](?=\s|\Z)", re.DOTALL)


def prose(text: str) -> str:
    """A comment as Markdown that reads as it does: `*` and `<` mean themselves in it."""
    return _CODE_OR_MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", text)


def first_sentence(text: str) -> str:
    """The first sentence of a comment, as prose."""
    found = _SENTENCE.match(text)
    return prose(found[0] if found else text)


def anchor(heading: str) -> str:
    """What hosts call a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; each cell becomes one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def page(parts: Iterable[str]) -> str:
    """A page of these parts, without the empty ones."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
