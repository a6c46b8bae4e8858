"""The knowledge log: one line of experience at a time."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum

from mneme.visible import visible_line

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.clock import MICROSECONDS


class KnowledgeType(IntEnum):
    """What kind of experience it is. The numbers are those of `mneme.v1.KnowledgeType`."""

    ERROR = 1
    SUCCESS = 2
    PATTERN = 3


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """How often something worked: `successes` times out of `tries`, of which there is one or more.

    Written as "9/10": so it is stored and shown.
    """

    successes: int
    tries: int

    @classmethod
    def parse(cls, text: str) -> SuccessRate | None:
        """Return the rate that a text "X/Y" says; None for an empty one.

        Raises:
            ValueError: it says none.
        """
        if not text:
            return None
        successes, tries = (int(part) for part in text.split("/"))
        if not 0 <= successes <= tries or tries < 1:
            raise ValueError(f"{text!r} is not a success rate")
        return cls(successes, tries)

    def __str__(self) -> str:
        return f"{self.successes}/{self.tries}"

    @property
    def lower_bound(self) -> float:
        """The lower end of the 95 % Wilson interval.

        Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        JASA 22 (1927). It keeps 1/1 (0.21) below 90/100 (0.83).
        """
        z = 1.959964
        n, p = self.tries, self.successes / self.tries
        centre = p + z * z / (2 * n)
        margin = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, centre - margin) / (1 + z * z / n)


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """One line of the log. `timestamp_us` 0: not given."""

    project: str
    type: KnowledgeType
    context: str
    lesson: str
    id: str = ""
    agent_id: str = ""
    command: str = ""
    success_rate: SuccessRate | None = None
    tags: tuple[str, ...] = ()
    timestamp_us: int = 0

    @property
    def text(self) -> str:
        """What the entry is found by."""
        command = f" ({self.command})" if self.command else ""
        return f"{self.context}: {self.lesson}{command}"

    def identified(self, now: int) -> KnowledgeEntry:
        """Return the entry with an id made of what was given, and a time."""
        given: list[Json] = [
            self.project, self.agent_id, int(self.type), self.context, self.command, self.lesson,
            str(self.success_rate or ""), list(self.tags), self.timestamp_us,
        ]  # fmt: skip
        digest = hashlib.sha256(canonical_json(given).encode()).hexdigest()
        return replace(self, id=self.id or digest[:32], timestamp_us=self.timestamp_us or now)

    def same_content(self, other: KnowledgeEntry) -> bool:
        """Whether it says the same, whenever it was said."""
        return replace(self, timestamp_us=0) == replace(other, timestamp_us=0)


@dataclass(frozen=True, slots=True)
class FoundKnowledge:
    """An entry and how well it fits; see `knowledge.Knowledge.query` for the score."""

    entry: KnowledgeEntry
    score: float
    similarity: float | None
    success_lower_bound: float | None


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """What was found, and the same as text within a token budget."""

    found: Sequence[FoundKnowledge]
    markdown: str
    tokens: int
    omitted: int
    words_only: bool = False


_PIECE = re.compile(r"[^\W_]{1,4}|[^\s]")


def count_tokens(text: str) -> int:
    """Return the tokens that a text takes, on the safe side of common tokenizers.

    One for each four letters or digits of a word, or part of four, and one for each other visible
    character. Byte-pair tokenizers need fewer for prose and about as many for code.
    """
    return len(_PIECE.findall(text))


def markdown_of(found: Sequence[FoundKnowledge], budget: int) -> KnowledgeAnswer:
    """Return as many of the entries, the best first, as fit the budget, as a numbered list."""
    text = "No relevant memories found." if not found else "No relevant memory fits the budget."
    lines: list[str] = []
    tokens, of_lines = count_tokens(text), 0
    for place, one in enumerate(found, 1):
        line, title = _line(place, one.entry), f"**Relevant Memories ({place}):**"
        of_lines += count_tokens(line)  # No token reaches from one line into the next.
        if of_lines + count_tokens(title) > budget:
            break
        lines.append(line)
        text, tokens = title, of_lines + count_tokens(title)
    if lines:
        text = "\n".join([text, "", *lines])
    return KnowledgeAnswer(found[: len(lines)], text, tokens, len(found) - len(lines))


def _line(place: int, entry: KnowledgeEntry) -> str:
    day = datetime.fromtimestamp(entry.timestamp_us / MICROSECONDS, UTC).date()
    command = f" `{entry.command}`" if entry.command else ""
    rate = f" ({entry.success_rate} success)" if entry.success_rate else ""
    return visible_line(f"{place}. [{day}] {entry.context}: {entry.lesson}{command}{rate}")
