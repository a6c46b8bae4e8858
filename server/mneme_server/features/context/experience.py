"""Episodes and skills, as far as context is concerned. A later capability keeps them and brings
what searches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.recall.confidence import FACTS_BY_DEFAULT, CosineScale
from mneme_server.features.recall.model import Recalled

Near: TypeAlias = Callable[[str, Recalled, CosineScale], bool]
"""Tells whether what was recalled is near enough to a topic, given what the model's cosines
mean."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier attempt at a task. `score` is 0 to 1; `similarity` the cosine if it is known."""

    episode_id: str
    task: str
    success: bool
    reward: float
    critique: str
    occurred_us: int
    score: float
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class ProvenSkill:
    """A skill that was used. `low` and `high` are the 95 % interval of its success rate; `score`
    is 0 to 1; `similarity` the cosine if it is known."""

    skill_id: str
    name: str
    description: str
    uses: int
    successes: int
    low: float
    high: float
    score: float
    similarity: float | None = None
    updated_us: int = 0

    @property
    def said(self) -> str:
        """How it did, in words."""
        return f"worked in {self.successes} of {self.uses} use{'' if self.uses == 1 else 's'}"


class ExperienceSearch(Protocol):
    """Searches episodes and skills."""

    @property
    def kinds(self) -> frozenset[MemoryKind]:
        """The kinds of memory that it searches."""
        ...

    def attempts_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[Attempt]:
        """Return the attempts near a topic, the best first."""
        ...

    def skills_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[ProvenSkill]:
        """Return the skills near a topic that were used and do not fail more often than not, the
        best first; for a user none that attempts for another one taught."""
        ...


class Experience:
    """What searches episodes and skills, once it is brought; without it there are none."""

    def __init__(self) -> None:
        self._search: ExperienceSearch | None = None

    @property
    def kinds(self) -> frozenset[MemoryKind]:
        """The kinds of memory that it searches."""
        return frozenset() if self._search is None else self._search.kinds

    def bring(self, search: ExperienceSearch) -> None:
        """Search with this; called while the server is put together."""
        self._search = search

    def attempts_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[Attempt]:
        """See `ExperienceSearch`."""
        if self._search is None:
            return ()
        return self._search.attempts_on(
            tenant_id, topic, filter_, limit, near, min_confidence=min_confidence
        )

    def skills_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        near: Near,
        *,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[ProvenSkill]:
        """See `ExperienceSearch`."""
        if self._search is None:
            return ()
        return self._search.skills_on(
            tenant_id, topic, filter_, limit, near, min_confidence=min_confidence
        )
