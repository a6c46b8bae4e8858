"""Edges: what brings about what, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

MEMORY, EPISODE, SKILL, TAG, TOOL = "memory", "episode", "skill", "tag", "tool"
STORED = (MEMORY, EPISODE, SKILL)
"""What a cause or an effect can be that is stored here."""
REWARD, SUCCESS = "reward", "success"
"""What Discover calls the outcomes of an episode."""


class Origin(IntEnum):
    """Where an edge comes from. The numbers are those of `mneme.v1.EdgeOrigin`."""

    STATED = 1
    EXPERIMENT = 2
    DISCOVERED = 3


@dataclass(frozen=True, slots=True)
class Edge:
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

    def differing(self, other: Edge) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in CONTENT if getattr(self, name) != getattr(other, name)]


FIGURES = ("uplift", "confidence", "sample_size", "confounder_score")
"""What estimates an edge: whoever changes one of these states it."""
CONTENT = (
    "cause", "effect", *FIGURES, "evidence_ids", "experiment_ids", "mechanism", "metadata_json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Which edges. Empty fields do not filter; given ones must all match."""

    cause: str = ""
    effect: str = ""
    origin: Origin | None = None
    min_confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Chain:
    """Edges, each of which ends where the next begins, with the product of their uplifts and of
    their confidences."""

    edges: Sequence[Edge]
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
