"""What Discover is asked, and what it finds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

from mneme_server.common.canonical import canonical_json
from mneme_server.features.causal.model import REWARD, SUCCESS
from mneme_server.features.skills.episode_model import EpisodeFilter

OUTCOMES = (REWARD, SUCCESS)


class Correction(IntEnum):
    """How false discoveries are controlled. The numbers are those of `mneme.v1.FdrMethod`."""

    BENJAMINI_HOCHBERG = 1
    BENJAMINI_YEKUTIELI = 2


class Change(IntEnum):
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
class Question:
    """What Discover is asked; see `mneme.v1.DiscoverRequest`."""

    filter: EpisodeFilter = field(default_factory=EpisodeFilter)
    adjust_for: tuple[str, ...] = ()
    min_attempts: int = 3
    min_success_rate: float = 0.6
    min_confidence: float = 0.7
    min_sample_size: int = 30
    fdr: float = 0.05
    correction: Correction = Correction.BENJAMINI_HOCHBERG
    dry_run: bool = False

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
    def of(cls, kept: Mapping[str, Any]) -> Question:
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
class Finding:
    """An effect that was tested: what `estimating.Estimate` says, and what became of it."""

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
    change: Change
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
class Refused:
    """A cause that was not estimated; `outcome` is "" if none was."""

    cause: str
    why: Refusal
    treated: int
    control: int
    overlap: float | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What Discover found: `findings`, the surest first; `refused`, those with the most first.

    `removed` counts edges that it had found before, and that no longer hold.
    """

    findings: Sequence[Finding]
    refused: Sequence[Refused]
    episodes: int
    not_embedded: int
    adjusted_for: Sequence[str]
    not_adjusted_for: Mapping[str, NotAdjustedReason]
    removed: int = 0
    truncated: bool = False
