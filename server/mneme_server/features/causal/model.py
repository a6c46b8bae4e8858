"""Edges from causes to effects, the experiments that test them, and what Discover is asked and
answers."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import canonical_json
from mneme_server.common.etags import etag_of
from mneme_server.features.skills.model import EpisodeFilter
from mneme_server.statistics.inference import Floats

MEMORY, EPISODE, SKILL, TAG, TOOL = "memory", "episode", "skill", "tag", "tool"
STORED = (MEMORY, EPISODE, SKILL)
"""What a cause or an effect can be that is stored here."""
REWARD, SUCCESS = "reward", "success"
"""What Discover calls the outcomes of an episode."""
FIGURES = ("uplift", "confidence", "sample_size", "confounder_score")
"""What estimates an edge: whoever changes one of these states it."""
CONTENT = (
    "cause", "effect", *FIGURES, "evidence_ids", "experiment_ids", "mechanism", "metadata_json",
)  # fmt: skip
OUTCOMES = (REWARD, SUCCESS)


class Origin(IntEnum):
    """Where an edge comes from. The numbers are those of `mneme.v1.EdgeOrigin`."""

    STATED = 1
    EXPERIMENT = 2
    DISCOVERED = 3


@dataclass(frozen=True, slots=True)
class CausalEdge:
    """A cause changes an effect by `uplift`, in the effect's unit; times are microseconds.

    `low` and `high` are the ends of its 95 % interval, None if nobody estimated it. `scope` tells
    which of Discover's questions found it, "" if none did. `metadata_json` is canonical JSON.
    """

    id: str
    cause: str
    effect: str
    uplift: float
    confidence: float
    sample_size: int = 0
    evidence_ids: tuple[str, ...] = ()
    experiment_ids: tuple[str, ...] = ()
    confounder_score: float | None = None
    mechanism: str = ""
    metadata_json: str = "{}"
    origin: Origin = Origin.STATED
    low: float | None = None
    high: float | None = None
    scope: str = ""
    created_us: int = 0
    updated_us: int = 0

    @property
    def weight(self) -> float:
        """What it is ranked by: how much is likely to change."""
        return self.confidence * abs(self.uplift)

    @property
    def etag(self) -> str:
        """What tells this state of the edge from others."""
        return etag_of(self)

    def differing(self, other: CausalEdge) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in CONTENT if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Which edges. Empty fields do not filter; given ones must all match."""

    cause: str = ""
    effect: str = ""
    origin: Origin | None = None
    min_confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class CausalChain:
    """Edges, each of which ends where the next begins, with the product of their uplifts and of
    their confidences."""

    edges: Sequence[CausalEdge]
    uplift: float
    confidence: float

    @property
    def cause(self) -> str:
        """Where it begins."""
        return self.edges[0].cause

    @property
    def effect(self) -> str:
        """Where it ends."""
        return self.edges[-1].effect

    @property
    def weight(self) -> float:
        """What it is ranked by."""
        return self.confidence * abs(self.uplift)


def node(kind: str, name: str) -> str:
    """Return what edges call something of a kind: "memory:ID", "tag:NAME"."""
    return f"{kind}:{name}"


def stored_id(name: str) -> tuple[str, str] | None:
    """Return the kind and the id of what a cause or an effect names, if that is stored here."""
    kind, colon, rest = name.partition(":")
    return (kind, rest) if colon and kind in STORED else None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Observations by subject, each with the mean of its outcomes, of those in one arm.

    Args:
        values: the means, shape (n,).
        treated: whether the subject got the cause, shape (n,).
        assigned: whether chance said so, shape (n,).
        repeated: subjects that were observed more than once.
        in_both: subjects that were observed in both arms, which are left out: they belong to
            neither, and to count in both would take them for two.
    """

    values: Floats
    treated: NDArray[np.bool_]
    assigned: NDArray[np.bool_]
    repeated: int
    in_both: int = 0


class ExperimentStatus(IntEnum):
    """How far an experiment has come. The numbers are those of `mneme.v1.ExperimentStatus`."""

    RUNNING = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class ExperimentArm:
    """What was observed of one arm: `deviation` needs two subjects, `mean` one."""

    count: int
    mean: float | None = None
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """What the observations say; see `mneme.v1.ExperimentResult`."""

    treatment: ExperimentArm
    control: ExperimentArm
    uplift: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    sequential_low: float | None = None
    sequential_high: float | None = None
    not_assigned: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: Mapping[str, object]) -> ExperimentResult:
        """Return the result that was kept as JSON, as `dataclasses.asdict` makes it."""
        fields = dict(kept)
        arms = {name: ExperimentArm(**fields.pop(name)) for name in ("treatment", "control")}  # type: ignore[arg-type]
        notes = fields.pop("notes")
        return cls(**arms, **fields, notes=tuple(notes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Of each block of `block_size` subjects `treated_per_block` get the cause. Times are
    microseconds, `metadata_json` is canonical JSON; `result` is set once it was concluded."""

    id: str
    name: str
    cause: str
    effect: str
    description: str = ""
    block_size: int = 4
    treated_per_block: int = 2
    seed: str = ""
    metadata_json: str = "{}"
    status: ExperimentStatus = ExperimentStatus.RUNNING
    assigned: int = 0
    observations: int = 0
    result: ExperimentResult | None = None
    edge_id: str = ""
    created_us: int = 0
    completed_us: int | None = None

    @property
    def etag(self) -> str:
        """What tells this state of the experiment from others, what is counted of it left aside."""
        return etag_of(self, without=("assigned", "observations"))

    def treats(self, stratum: str, place: int) -> bool:
        """Tell whether the subject at a place of a stratum, from 0 on, gets the cause.

        It depends on nothing else but the seed.
        """
        block, within = divmod(place, self.block_size)
        drawn = hashlib.sha256(f"{self.seed}\0{stratum}\0{block}".encode()).digest()
        order = list(range(self.block_size))
        random.Random(int.from_bytes(drawn)).shuffle(order)
        return order[within] < self.treated_per_block


@dataclass(frozen=True, slots=True)
class Assignment:
    """A subject's arm, and its place in its stratum."""

    subject: str
    treatment: bool
    stratum: str
    place: int
    assigned_us: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a subject; "" is a subject of its own. `assigned` tells whether chance said the
    arm, `treatment` None that nobody said it. `context_json` is canonical JSON."""

    id: str
    outcome: float
    subject: str = ""
    treatment: bool | None = None
    assigned: bool = False
    context_json: str = "{}"
    observed_us: int = 0


class Correction(IntEnum):
    """How false discoveries are controlled. The numbers are those of `mneme.v1.FdrMethod`."""

    BENJAMINI_HOCHBERG = 1
    BENJAMINI_YEKUTIELI = 2


class DiscoveryChange(IntEnum):
    """What became of an effect that was tested. The numbers are those of
    `mneme.v1.DiscoveryChange`."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    KEPT = 4
    CIRCLE = 5
    NOT_SURE = 6
    RARELY_SUCCEEDS = 7


class Refusal(IntEnum):
    """Why a cause was not estimated. The numbers are those of `mneme.v1.DiscoveryRefusal`."""

    TOO_FEW = 1
    NO_OVERLAP = 2
    NEVER_DIFFERS = 3


class NotAdjustedReason(IntEnum):
    """Why something was not adjusted for. The numbers are those of `mneme.v1.NotAdjustedReason`."""

    SAME_IN_ALL = 1
    TOO_FEW_ALIKE = 2


@dataclass(frozen=True, slots=True)
class DiscoveryQuestion:
    """What Discover is asked; see `mneme.v1.DiscoveryQuestion`."""

    filter: EpisodeFilter = field(default_factory=EpisodeFilter)
    adjust_for: tuple[str, ...] = ()
    min_attempts: int = 3
    min_success_rate: float = 0.6
    min_confidence: float = 0.7
    min_sample_size: int = 30
    fdr: float = 0.05
    correction: Correction = Correction.BENJAMINI_HOCHBERG
    dry_run: bool = False
    include_tools: bool = False

    @property
    def scope(self) -> str:
        """What tells the edges that it finds from those of other questions."""
        asked = canonical_json([asdict(self.filter), sorted(self.adjust_for)])
        return hashlib.sha256(asked.encode()).hexdigest()[:32]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        kept: dict[str, Any] = json.loads(canonical_json(asdict(self)))
        return kept

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> DiscoveryQuestion:
        """Return the question that was kept as JSON."""
        given = dict(kept)
        filter_ = dict(given.pop("filter"))
        filter_["tags"] = tuple(filter_["tags"])
        return cls(
            filter=EpisodeFilter(**filter_),
            adjust_for=tuple(given.pop("adjust_for")),
            correction=Correction(given.pop("correction")),
            **given,
        )


@dataclass(frozen=True, slots=True)
class EffectFinding:
    """An effect that was tested: what `estimation.EffectEstimate` says, and what became of it."""

    cause: str
    outcome: str
    uplift: float
    low: float
    high: float
    p_value: float
    q_value: float
    with_cause: float
    without: float
    plain: float
    overlap: float
    treated: int
    control: int
    change: DiscoveryChange
    edge_id: str = ""

    @property
    def confidence(self) -> float:
        """How sure it is that there is an effect."""
        return 1 - self.q_value

    @property
    def confounder_score(self) -> float:
        """How far other things mix into the plain difference."""
        sizes = abs(self.plain) + abs(self.uplift)
        return abs(self.plain - self.uplift) / sizes if sizes else 0.0


@dataclass(frozen=True, slots=True)
class RefusedCause:
    """A cause that was not estimated; `outcome` is "" if none was."""

    cause: str
    why: Refusal
    treated: int
    control: int
    overlap: float | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveryReport:
    """What Discover found: `findings`, the surest first; `refused`, those with the most first.

    `removed` counts edges that it had found before, and that no longer hold.
    """

    findings: Sequence[EffectFinding]
    refused: Sequence[RefusedCause]
    episodes: int
    not_embedded: int
    adjusted_for: Sequence[str]
    not_adjusted_for: Mapping[str, NotAdjustedReason]
    removed: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class DiscoverySchedule:
    """When a tenant's server discovers by itself; off until it is set.

    Args:
        minute: of the day, in UTC.
        question: what it discovers.
        next_us: when it starts next; None: it is off.
        last_us: when it started last.
        last_operation: the operation that it started then.
    """

    minute: int = 3 * 60
    question: DiscoveryQuestion = field(default_factory=DiscoveryQuestion)
    next_us: int | None = None
    last_us: int | None = None
    last_operation: str = ""

    @property
    def enabled(self) -> bool:
        """Whether it does."""
        return self.next_us is not None
