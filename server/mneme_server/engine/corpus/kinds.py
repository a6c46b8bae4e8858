"""Kinds of memory: names that capabilities bring, not numbers of a central list."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_KINDS = 256
"""Kinds that a server may know: an index has a byte for a memory's."""
_NAME = re.compile(r"[a-z][a-z_]{0,31}")


@dataclass(frozen=True, slots=True)
class MemoryKind:
    """A kind of memory. What it is, the option `brings_kinds` of its service says.

    Args:
        name: what its memories are stored under, and asked for by.
        spoken: the categories of its memories that are said, one after another: what is said before
            and after them tells what they are about. Others stand for themselves.
        failed: the categories of its memories that report a failure.
        lasting: whether its memories are never removed, so that the feed need not say by name what
            their documents' numbers tell at any time.
        successor: what, of a memory's details, names the id of the one that replaced it; "" where
            none is ever replaced. Recall puts that one before it.
        parts: the kinds of memory that its memories sum up, one a session: searched for alone, they
            are ranked by these, too.
        commits: whether each comes with a commitment to its content, salted, which holds for good.
        of_session: whether each is of the user whom its session serves, and of nobody without one.

    Raises:
        ValueError: the name is none.
    """

    name: str
    spoken: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    lasting: bool = False
    successor: str = ""
    parts: frozenset[MemoryKind] = frozenset()
    commits: bool = False
    of_session: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} is no name for a kind of memory: those are up to 32 lower-case"
                ' letters and "_", a letter first'
            )
