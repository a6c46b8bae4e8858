"""Patterns, and how they were used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from mneme_server.common.counting import MAX_COUNT
from mneme_server.common.etags import etag_of
from mneme_server.features.memory.model import Memory
from mneme_server.statistics.inference import wilson


class StructureOf(IntEnum):
    """What a structure is held against. The numbers are those of `mneme.v1.StructureOf`."""

    METADATA = 1
    TEXT = 2


@dataclass(frozen=True, slots=True)
class Regex:
    """Texts in which an expression of RE2 is found."""

    expression: str


@dataclass(frozen=True, slots=True)
class Semantic:
    """Texts whose cosine with `text` is at least `threshold`."""

    text: str
    threshold: float


@dataclass(frozen=True, slots=True)
class Structural:
    """JSON that is valid under a JSON Schema, which is canonical JSON itself."""

    schema_json: str
    of: StructureOf = StructureOf.METADATA


Definition = Regex | Semantic | Structural


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern. `created_us` is in microseconds since 1970."""

    id: str
    name: str
    definition: Definition
    description: str = ""
    created_us: int = 0

    @property
    def etag(self) -> str:
        """What tells this state of the pattern from others."""
        return etag_of(self)


@dataclass(frozen=True, slots=True)
class Use:
    """How a pattern was used: searches, memories these matched, and microseconds they took,
    together; `last_us` is when the last was, 0 before the first. Adds up."""

    times: int = 0
    matches: int = 0
    took_us: int = 0
    last_us: int = 0

    def __add__(self, other: Use) -> Use:
        return Use(
            min(self.times + other.times, MAX_COUNT),
            min(self.matches + other.matches, MAX_COUNT),
            min(self.took_us + other.took_us, MAX_COUNT),
            max(self.last_us, other.last_us),
        )


@dataclass(frozen=True, slots=True)
class PatternStats:
    """A pattern, how it was used, and how many of its matches were said to be right, and wrong."""

    pattern: Pattern
    use: Use = Use()
    right: int = 0
    wrong: int = 0

    @property
    def success_rate(self) -> float | None:
        """The share of matches that were right, of those somebody spoke of; None without any."""
        said = self.right + self.wrong
        return self.right / said if said else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the success rate (Wilson)."""
        said = self.right + self.wrong
        if not said:
            return 0.0, 1.0
        low, high = wilson(np.array([float(self.right)]), np.array([float(said)]))
        return float(low[0]), float(high[0])


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A place in a text, in characters; `groups` are what the expression's groups hold."""

    text: str
    start: int
    end: int
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MatchedMemory:
    """A memory that a pattern matches, and where; `similarity` is a semantic pattern's cosine."""

    memory: Memory
    matches: Sequence[TextMatch] = ()
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class PatternMatches:
    """What a search found, best first, and how many memories match; `capped`: perhaps more."""

    results: Sequence[MatchedMemory]
    total: int
    searched: int
    took_s: float
    capped: bool = False
    partial: bool = False
