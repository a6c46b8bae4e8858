"""Ports to storage, of the use cases of episodes and skills."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.engine.corpus.ports import Matrix
from mneme_server.features.events.history import ActivityReader
from mneme_server.features.events.ports import EventsUnit
from mneme_server.features.memory.ports import MemoriesUnit
from mneme_server.features.skills.model import (
    Episode,
    EpisodeFilter,
    Relationship,
    Skill,
    SkillFilter,
    SkillLink,
    SkillUse,
    UseTally,
)


class EpisodeRepository(Protocol):
    """The tenant's episodes."""

    def get_many(self, episode_ids: Collection[str]) -> dict[str, Episode]:
        """Return those that exist, by id."""
        ...

    def save(self, episodes: Collection[Episode], task_vectors: Mapping[str, Matrix]) -> None:
        """Insert or replace these episodes; `task_vectors` (d,) are those of tasks, by episode.

        The memories that they name must exist.
        """
        ...

    def of_others(self, episode_ids: Collection[str], user_id: str) -> set[str]:
        """Return those of the episodes that are of another user than this one; none of nobody."""
        ...

    def task_vectors(self, episode_ids: Collection[str]) -> Mapping[str, Matrix]:
        """Return the vectors (d,) of tasks that were saved, by episode."""
        ...

    def remove(self, episode_id: str) -> None:
        """Remove an episode. An unknown one is ignored."""
        ...

    def remove_many(self, episode_ids: Collection[str]) -> None:
        """Remove these episodes. Unknown ones are ignored."""
        ...

    def average_reward(self) -> float | None:
        """Return the mean of the rewards; None without episodes."""
        ...

    def resting_on(self, memory_ids: Collection[str]) -> set[str]:
        """Return the ids of the episodes that name one of these memories."""
        ...

    def page(
        self, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Episode]:
        """Return episodes, latest first, that come after the key (occurred_us, id)."""
        ...

    def digests(
        self, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Episode]:
        """Return what `page` does, without inputs, and only the beginnings of outputs."""
        ...

    def by_id(self, filter_: EpisodeFilter, after: str, limit: int) -> Sequence[Episode]:
        """Return episodes by id, after that id."""
        ...

    def count(self, filter_: EpisodeFilter) -> int:
        """Return how many match."""
        ...


class SkillRepository(Protocol):
    """The tenant's skills."""

    def get_many(self, skill_ids: Collection[str]) -> dict[str, Skill]:
        """Return those that exist, by id."""
        ...

    def records(self, skill_ids: Collection[str]) -> dict[str, UseTally]:
        """Return `Skill.record` of those that exist, by id."""
        ...

    def learned(self) -> Mapping[str, Skill]:
        """Return the skills that were consolidated from episodes, by id."""
        ...

    def names(self) -> set[str]:
        """Return every name that is taken."""
        ...

    def ids_named(self, names: Collection[str]) -> dict[str, str]:
        """Return the ids of skills, by name, of those names that are taken."""
        ...

    def save(self, skill: Skill) -> None:
        """Insert or replace a skill, but for its episodes."""
        ...

    def set_sources(self, skill_id: str, episode_ids: Sequence[str]) -> None:
        """Replace the episodes that a skill came from; the latest is first."""
        ...

    def average_rate(self) -> float | None:
        """Return the mean success rate of the skills that were used; None without any."""
        ...

    def sources_among(self, episode_ids: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return the episodes of the skills that came from some of these, by skill."""
        ...

    def forget_sources(self, episode_ids: Collection[str]) -> None:
        """Take these episodes out of those that skills came from."""
        ...

    def remove(self, skill_id: str) -> None:
        """Remove a skill with its links, uses and the ids of its episodes."""
        ...

    def page(self, filter_: SkillFilter, after: tuple[str] | None, limit: int) -> Sequence[Skill]:
        """Return skills by name, after that name."""
        ...

    def count(self, filter_: SkillFilter) -> int:
        """Return how many match."""
        ...

    def use(self, skill_id: str, use_id: str) -> SkillUse | None:
        """Return a reported use, or None."""
        ...

    def add_use(self, use: SkillUse) -> None:
        """Insert a use."""
        ...

    def links(self, skill_ids: Collection[str]) -> Mapping[str, Sequence[SkillLink]]:
        """Return the links of skills that have some, in both directions, by skill."""
        ...

    def save_link(self, link: SkillLink) -> None:
        """Insert or replace a link."""
        ...

    def remove_links(self, parent_id: str, child_id: str, relationship: Relationship | None) -> int:
        """Remove links from one skill to another; return how many there were."""
        ...

    def dependents(self, skill_ids: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the skills that each of these is a prerequisite of, of those that are some's."""
        ...


class SkillsUnit(EventsUnit, MemoriesUnit, Protocol):
    """One transaction, as far as episodes and skills are concerned."""

    @property
    def activity(self) -> ActivityReader:
        """What the tenant's sessions held."""
        ...

    @property
    def episodes(self) -> EpisodeRepository:
        """The tenant's episodes."""
        ...

    @property
    def skills(self) -> SkillRepository:
        """The tenant's skills."""
        ...
