"""Names that somebody gave and that there are not: told back short, and compared only where they
may be misspelt."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHORT = 100
"""Characters of what was given that are told back: enough to know it by."""


def short(given: str, most: int = SHORT) -> str:
    """Return what was given, or its beginning where it is long."""
    return given if len(given) <= most else given[: most - 1] + "…"


def near(given: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that were meant, perhaps. What is far longer than a name is not compared:
    that takes time with the product of the lengths."""
    return get_close_matches(given, known, most) if len(given) <= SHORT else []
