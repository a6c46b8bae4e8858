"""What the use cases of episodes and skills need from storage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from mneme_server.events.activity import ActivityReader
from mneme_server.events.ports import EventsUnit
from mneme_server.skills.episode_model import Episode, EpisodeFilter


class EpisodeRepository(Protocol):
    """The tenant's episodes."""

    def get_many(self, episode_ids: Collection[str]) -> dict[str, Episode]:
        """Return those that exist, by id."""
        ...

    def save(self, episodes: Collection[Episode]) -> None:
        """Insert or replace these episodes."""
        ...

    def remove(self, episode_id: str) -> None:
        """Remove an episode. An unknown one is ignored."""
        ...

    def page(
        self, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Episode]:
        """Return episodes, latest first, that come after the key (occurred_us, id)."""
        ...

    def by_id(self, filter_: EpisodeFilter, after: str, limit: int) -> Sequence[Episode]:
        """Return episodes by id, after that id."""
        ...

    def count(self, filter_: EpisodeFilter) -> int:
        """Return how many match."""
        ...


class SkillsUnit(EventsUnit, Protocol):
    """One transaction, as far as episodes and skills are concerned."""

    @property
    def activity(self) -> ActivityReader:
        """What the tenant's sessions held."""
        ...

    @property
    def episodes(self) -> EpisodeRepository:
        """The tenant's episodes."""
        ...
