"""Episodes: attempts at a task, with what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_REWARD = 1e9
"""The largest reward of an episode, and how far below zero the least one is."""


def within_bounds(reward: float) -> float:
    """Return the reward as an episode takes it: squares of larger ones overflow."""
    return min(max(reward, -MAX_REWARD), MAX_REWARD)


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task. `metadata_json` is canonical JSON; times are microseconds since 1970.

    `filled` names the fields that were taken from the session's record; `memory_ids`, sorted, are
    the memories that it rests on.
    """

    id: str
    task: str
    reward: float
    success: bool
    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    input: str = ""
    output: str = ""
    critique: str = ""
    latency_ms: int | None = None
    tokens_used: int | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    occurred_us: int = 0
    created_us: int = 0
    filled: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the episode is found by: what it was about, and what was thought of it.

        Not by its output, which draws attempts at one task apart.
        """
        return f"{self.task}\n{self.critique}".strip()

    @property
    def outcome(self) -> str:
        """How it ended, in a word: "success" or "failure"."""
        return "success" if self.success else "failure"

    def differing(self, other: Episode) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in _CONTENT if getattr(self, name) != getattr(other, name)]


_CONTENT = (
    "session_id", "agent_id", "user_id", "project", "task", "input", "output", "critique", "reward",
    "success", "latency_ms", "tokens_used", "tools", "tags", "metadata_json", "occurred_us",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewEpisode:
    """An episode as a caller gives it. Empty and None fields were not given."""

    id: str = ""
    task: str = ""
    reward: float | None = None
    success: bool | None = None
    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    input: str = ""
    output: str = ""
    critique: str = ""
    latency_ms: int | None = None
    tokens_used: int | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    occurred_us: int | None = None
    memory_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Which episodes. Empty fields do not filter; given ones must all match.

    `success` None: however they ended. `start_us` is inclusive, `end_us` exclusive.
    """

    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    success: bool | None = None
    min_reward: float | None = None
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class FoundEpisode:
    """An episode and how well it fits: `score` 0 to 1, `similarity` the cosine if it is known."""

    episode: Episode
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class CritiquePoint:
    """Something that critiques say, in the words of one of them, and the episodes that say it."""

    text: str
    episode_ids: Sequence[str]
    failures: int
    successes: int


@dataclass(frozen=True, slots=True)
class CritiqueSummary:
    """What critiques say: `points` in order of weight, `more` of which are left out."""

    points: Sequence[CritiquePoint]
    more: int
    with_critique: int
    without_critique: int
    text: str
