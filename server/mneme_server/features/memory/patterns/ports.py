"""Ports to what the use cases of patterns need from storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.features.memory.patterns.model import Pattern, PatternStats, Use
from mneme_server.features.memory.ports import MemoriesUnit


class PatternRepository(Protocol):
    """The tenant's patterns."""

    def named(self, name: str) -> PatternStats | None:
        """Return the pattern of this name, or None."""
        ...

    def add(self, pattern: Pattern) -> None:
        """Insert a pattern."""
        ...

    def remove(self, pattern_id: str) -> None:
        """Remove a pattern, with what was said of its matches."""
        ...

    def page(self, after: str, limit: int) -> Sequence[PatternStats]:
        """Return patterns by name, after that name."""
        ...

    def count(self) -> int:
        """Return how many there are."""
        ...

    def count_uses(self, uses: Mapping[str, Use]) -> None:
        """Add to the uses of patterns, by id. Patterns that are gone are left out."""
        ...

    def judge(self, pattern_id: str, verdicts: Mapping[str, bool], now_us: int) -> None:
        """Note of memories, by id, whether they were matched rightly; counts each memory once."""
        ...


class PatternsUnit(MemoriesUnit, Protocol):
    """One transaction, as far as patterns are concerned."""

    @property
    def patterns(self) -> PatternRepository:
        """The tenant's patterns."""
        ...


class Matcher(Protocol):
    """Tells which of many items match."""

    def matching(self, joined: bytes) -> Collection[int]:
        """Return which of the items match, from 0; `joined` are they, in UTF-8, with NUL between
        them."""
        ...
