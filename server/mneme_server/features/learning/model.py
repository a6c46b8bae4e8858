"""Sessions, the steps that they are told, and what is kept of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from mneme_server.common.canonical import Json
from mneme_server.features.learning.algorithms.algorithm import Setting
from mneme_server.features.learning.spaces import Space


class LearningMode(IntEnum):
    """When a session learns; the numbers are the wire's."""

    INLINE = 1
    BACKGROUND = 2


class LearningStatus(IntEnum):
    """Whether a session is in use; the numbers are the wire's."""

    ACTIVE = 1
    ENDED = 2


@dataclass(frozen=True, slots=True)
class Definition:
    """What a session is: fixed when it is started first. `config` has a value for each key."""

    algorithm: str
    config: Mapping[str, Setting]
    states: Space
    actions: Space
    seed: int
    mode: LearningMode


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """What a session was told and did, in figures.

    Args:
        transitions: steps recorded; they are numbered from 1.
        episodes: that ended.
        total_reward: the sum of all rewards.
        ended_reward: the sum of the rewards of the episodes that ended.
        lowest: the smallest reward of an episode that ended.
        highest: the largest one.
        bytes: that its recorded steps take.
    """

    transitions: int = 0
    episodes: int = 0
    total_reward: float = 0.0
    ended_reward: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LearningProgress:
    """How far a session has learned: the number of the last step, how often something was corrected
    in all, and for how long it learned, in microseconds."""

    learned: int = 0
    updates: int = 0
    training_us: int = 0


@dataclass(frozen=True, slots=True)
class LearningSession:
    """A session as it is stored.

    Args:
        number: of its rows; never used again.
        id: the caller's.
        definition: what it is.
        version: of its algorithm when it was started.
        secret: with which its predictions are sealed.
        status: whether it is in use.
        seen: the labels of an open action space in the order in which they were first seen.
        counts: see there.
        progress: see there; while it is open it is further.
        created_us: when it was started first.
        updated_us: when it was last told anything, started or ended.
        ended_us: when it ended; None while it is active.
    """

    number: int
    id: str
    definition: Definition
    version: int
    secret: bytes
    status: LearningStatus = LearningStatus.ACTIVE
    seen: Sequence[Json] = ()
    counts: SessionCounts = SessionCounts()
    progress: LearningProgress = LearningProgress()
    created_us: int = 0
    updated_us: int = 0
    ended_us: int | None = None


@dataclass(frozen=True, slots=True)
class StepInput:
    """A step as a caller tells it, not checked yet. What is None was not given."""

    reward: float
    prediction_id: str = ""
    state: Json = None
    action: Json = None
    next_state: Json = None
    terminated: bool = False
    truncated: bool = False
    actor: str = ""
    probability: float | None = None
    allowed: Sequence[Json] = ()
    available: Sequence[Json] = ()


@dataclass(frozen=True, slots=True)
class TrajectoryInput:
    """Steps that are told in one piece, not checked yet, and what is noted of them."""

    id: str
    steps: Sequence[StepInput]
    metadata_json: str = "{}"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Steps that were told in one piece.

    Args:
        id: unique in the session.
        metadata_json: what was noted of it, canonical JSON.
        steps: how many it has.
        total_reward: the sum of its rewards.
        first: the number of its first step.
        recorded_us: when it was recorded.
    """

    id: str
    metadata_json: str
    steps: int
    total_reward: float
    first: int
    recorded_us: int


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step as it is kept.

    Args:
        state: where it was done.
        action: what was done.
        reward: what it brought.
        next_state: where it led; None when the task is done with it.
        terminated: whether nothing follows.
        truncated: whether the episode was broken off.
        actor: whose episode it belongs to.
        probability: with which the action was chosen; None if that is not known.
        allowed: the actions to choose from in `next_state`; empty: all.
        available: the actions that it was chosen from; empty: all.
        prediction: which prediction was followed; None if none was.
        trajectory_id: the id of the call that told it; None for a stream's.
        place: among the steps of that call, from 0.
        number: among the session's steps, from 1.
        episode: the number of its episode, in the order in which they began, from 1.
        recorded_us: when it was recorded.
        episode_reward: the sum of the rewards of its episode up to it; None of what was recorded
            after steps that were forgotten.
    """

    state: Json
    action: Json
    reward: float
    next_state: Json
    terminated: bool
    truncated: bool
    actor: str
    probability: float | None
    allowed: Sequence[Json] = ()
    available: Sequence[Json] = ()
    prediction: str | None = None
    trajectory_id: str | None = None
    place: int = 0
    number: int = 0
    episode: int = 0
    recorded_us: int = 0
    episode_reward: float | None = None

    @property
    def ends(self) -> bool:
        """Whether it is the last of its episode."""
        return self.terminated or self.truncated


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """How a session stood when an episode ended. `loss`, `value` and `gradient_norm` are means
    since the point before, None where nothing was learned."""

    episode: int
    transitions: int
    reward: float
    moving_average: float
    convergence: float
    loss: float | None
    value: float | None
    gradient_norm: float | None
    exploration: float | None
    recorded_us: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a session had learned: how far that is, and all of it, encoded."""

    progress: LearningProgress
    data: bytes


@dataclass(frozen=True, slots=True)
class Export:
    """What a session exported: SHA-256 and size in bytes of the archive, and when that was."""

    digest: bytes
    size: int
    exported_us: int
