"""The ports of learning to a tenant's store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learning.model import (
    Checkpoint,
    Export,
    LearningSession,
    LearningStatus,
    MetricPoint,
    RecordedStep,
    Trajectory,
)


@dataclass(frozen=True, slots=True)
class LearningSessionFilter:
    """Which sessions are meant; what is empty does not filter."""

    algorithm: str = ""
    status: LearningStatus | None = None


class LearningSessionRepository(Protocol):
    """The tenant's sessions, what they have learned and how they did."""

    def get(self, session_id: str) -> LearningSession | None:
        """Return a session, or None."""
        ...

    def page(
        self, filter_: LearningSessionFilter, before: int | None, limit: int
    ) -> Sequence[LearningSession]:
        """Return sessions, the last started first, whose numbers are below `before`."""
        ...

    def count(self, status: LearningStatus | None = None) -> int:
        """Return how many there are."""
        ...

    def transitions(self) -> int:
        """Return how many transitions they have been told, together."""
        ...

    def behind(self) -> Sequence[str]:
        """Return the ids of those that learn in the background and have not saved all that they
        were told as learned."""
        ...

    def taken_bytes(self) -> int:
        """Return how many bytes the recorded steps and the exported models of all take."""
        ...

    def add(self, session: LearningSession) -> LearningSession:
        """Insert a session; return it with its number."""
        ...

    def update(self, session: LearningSession) -> None:
        """Store what has changed of a session: its status, counts, labels and times."""
        ...

    def delete(self, number: int) -> None:
        """Delete a session with all that belongs to it."""
        ...

    def checkpoint(self, number: int) -> Checkpoint | None:
        """Return what the session had learned when that was last saved.

        Raises:
            DataLoss: it is not as it was saved.
        """
        ...

    def save(self, number: int, checkpoint: Checkpoint) -> None:
        """Save what the session has learned."""
        ...

    def trained_us(self, day: int) -> int:
        """Return for how long all sessions learned on a day (since 1970), in microseconds, as far
        as it was saved."""
        ...

    def add_trained(self, day: int, training_us: int) -> None:
        """Add to that."""
        ...

    def add_points(self, number: int, points: Sequence[MetricPoint]) -> None:
        """Insert how a session stood when episodes ended."""
        ...

    def last_points(self, number: int, limit: int) -> Sequence[MetricPoint]:
        """Return the newest points, oldest first."""
        ...

    def points(self, number: int, episodes: Sequence[int]) -> Sequence[MetricPoint]:
        """Return the points of these episodes, oldest first."""
        ...


class StepRepository(Protocol):
    """The steps that the tenant's sessions were told."""

    def add(self, number: int, steps: Sequence[RecordedStep]) -> None:
        """Insert steps of a session."""
        ...

    def after(self, number: int, step: int, limit: int) -> Sequence[RecordedStep]:
        """Return the session's steps behind the one with this number, in their order."""
        ...

    def numbered(self, number: int, steps: Sequence[int]) -> Sequence[RecordedStep]:
        """Return the session's steps with these numbers, in the order given."""
        ...

    def of_trajectory(self, number: int, trajectory_id: str) -> Sequence[RecordedStep]:
        """Return the steps that were told with this id, in their order."""
        ...

    def add_trajectories(self, number: int, trajectories: Sequence[Trajectory]) -> None:
        """Insert what is noted of trajectories of a session."""
        ...

    def trajectories(self, number: int, before: int | None, limit: int) -> Sequence[Trajectory]:
        """Return a session's trajectories, the last recorded first, whose first steps have numbers
        below `before`."""
        ...

    def used(self, number: int, predictions: Sequence[str]) -> Sequence[str]:
        """Return those of these predictions of which it was told what came of them."""
        ...


class ExportRepository(Protocol):
    """The models that the tenant's sessions exported when they ended, one of each."""

    def get(self, number: int) -> Export | None:
        """Return what a session exported; None without it."""
        ...

    def put(self, number: int, export: Export, data: bytes) -> None:
        """Store a session's model, in place of the one before."""
        ...

    def chunks(self, number: int, first: int, count: int) -> Sequence[bytes]:
        """Return so many chunks of a session's model, in their order, from one on (the first is
        0); fewer at its end."""
        ...


class LearningUnit(CorpusUnit, Protocol):
    """One transaction, as far as learning is concerned."""

    @property
    def learning_sessions(self) -> LearningSessionRepository:
        """The tenant's sessions."""
        ...

    @property
    def learning_steps(self) -> StepRepository:
        """What they were told."""
        ...

    @property
    def learning_exports(self) -> ExportRepository:
        """What they exported."""
        ...


class ModelFiles(Protocol):
    """Copies of exported models, as files on the server's disk."""

    def write(self, tenant_id: str, session: LearningSession, data: bytes) -> str:
        """Write a session's model, in place of the one before; return its path in the data folder.
        Empty, and nothing is written, where the tenant has no folder that is its own."""
        ...

    def remove(self, tenant_id: str, session: LearningSession) -> None:
        """Remove a session's model, if there is one."""
        ...
