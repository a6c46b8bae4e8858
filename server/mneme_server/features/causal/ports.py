"""Ports to storage, of the use cases of cause and effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.features.causal.model import (
    Assignment,
    CausalEdge,
    EdgeFilter,
    Experiment,
    ExperimentStatus,
    Observation,
    Outcomes,
)
from mneme_server.features.memory.ports import MemoryRepository
from mneme_server.features.skills.ports import SkillsUnit


class EdgeRepository(Protocol):
    """The tenant's edges."""

    def get_many(self, edge_ids: Collection[str]) -> dict[str, CausalEdge]:
        """Return those that exist, by id."""
        ...

    def between(self, cause: str, effect: str) -> CausalEdge | None:
        """Return the edge from a cause to an effect, or None."""
        ...

    def out_of(self, nodes: Collection[str]) -> Sequence[CausalEdge]:
        """Return the edges that have one of these as their cause."""
        ...

    def into(self, nodes: Collection[str]) -> Sequence[CausalEdge]:
        """Return the edges that have one of these as their effect."""
        ...

    def causes_of(self, nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the causes of effects that have some, by effect."""
        ...

    def effects_of(self, nodes: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the effects of those of these causes that have some."""
        ...

    def strongest(
        self, min_confidence: float, min_uplift: float, limit: int
    ) -> Sequence[CausalEdge]:
        """Return the edges with the greatest weight, at least so sure and so large either way."""
        ...

    def count_strong(self, min_confidence: float, min_uplift: float) -> int:
        """Return how many edges are at least so sure and so large either way."""
        ...

    def uplifts(self, kind: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return the uplift of those of these things (memories, episodes, skills; by id) that an
        edge with a confidence of at least one half says something of: of the edges out of one,
        that of the greatest weight."""
        ...

    def of_scope(self, scope: str) -> Sequence[CausalEdge]:
        """Return the edges that this question of Discover's found."""
        ...

    def save(self, edge: CausalEdge) -> None:
        """Insert or replace an edge."""
        ...

    def remove(self, edge_ids: Collection[str]) -> int:
        """Remove edges, and return how many there were."""
        ...

    def touching(self, kind: str, ids: Collection[str]) -> Sequence[str]:
        """Return the ids of the edges that begin or end at one of these things, sorted."""
        ...

    def page(
        self, filter_: EdgeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[CausalEdge]:
        """Return edges, latest first, that come after the key (created_us, id)."""
        ...

    def count(self, filter_: EdgeFilter) -> int:
        """Return how many match."""
        ...

    def confidence(self) -> float | None:
        """Return the mean of the edges' confidence; None without edges."""
        ...


class ExperimentRepository(Protocol):
    """The tenant's experiments."""

    def get(self, experiment_id: str) -> Experiment | None:
        """Return an experiment, or None."""
        ...

    def save(self, experiment: Experiment) -> None:
        """Insert or replace an experiment, but for what is counted of it."""
        ...

    def remove(self, experiment_id: str) -> None:
        """Remove an experiment with its assignments and observations."""
        ...

    def page(
        self, status: ExperimentStatus | None, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Experiment]:
        """Return experiments, latest first, that come after the key (created_us, id)."""
        ...

    def count(self, status: ExperimentStatus | None) -> int:
        """Return how many have this status, or any."""
        ...

    def assignment(self, experiment_id: str, subject: str) -> Assignment | None:
        """Return a subject's assignment, or None."""
        ...

    def assigned_in(self, experiment_id: str, stratum: str) -> int:
        """Return how many subjects of a stratum were assigned."""
        ...

    def assign(self, experiment_id: str, assignment: Assignment) -> None:
        """Insert an assignment, and count it."""
        ...

    def observation(self, experiment_id: str, observation_id: str) -> Observation | None:
        """Return an observation, or None."""
        ...

    def observe(self, experiment_id: str, observation: Observation) -> None:
        """Insert an observation, and count it."""
        ...

    def outcomes(self, experiment_id: str) -> Outcomes:
        """Return all observations, by subject."""
        ...


class CausalUnit(SkillsUnit, Protocol):
    """One transaction, as far as cause and effect are concerned."""

    @property
    def remembered(self) -> MemoryRepository:
        """The tenant's memories."""
        ...

    @property
    def causal_edges(self) -> EdgeRepository:
        """The tenant's edges."""
        ...

    @property
    def experiments(self) -> ExperimentRepository:
        """The tenant's experiments."""
        ...
