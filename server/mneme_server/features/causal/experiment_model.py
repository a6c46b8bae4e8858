"""Experiments: subjects that get a cause, others that do not, and what came of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum


class Status(IntEnum):
    """How far an experiment has come. The numbers are those of `mneme.v1.ExperimentStatus`."""

    RUNNING = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class Arm:
    """What was observed of one arm: `deviation` needs two subjects, `mean` one."""

    count: int
    mean: float | None = None
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What the observations say; see `mneme.v1.ExperimentResult`."""

    treatment: Arm
    control: Arm
    uplift: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    sequential_low: float | None = None
    sequential_high: float | None = None
    not_assigned: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: Mapping[str, object]) -> Result:
        """Return the result that was kept as JSON, as `dataclasses.asdict` makes it."""
        fields = dict(kept)
        arms = {name: Arm(**fields.pop(name)) for name in ("treatment", "control")}  # type: ignore[arg-type]
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
    status: Status = Status.RUNNING
    assigned: int = 0
    observations: int = 0
    result: Result | None = None
    edge_id: str = ""
    created_us: int = 0
    completed_us: int | None = None

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
