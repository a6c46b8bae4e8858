"""What was forgotten, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.feed import ranges


class Reached(StrEnum):
    """How far a forgetting has come, as the catalog knows it."""

    ASKED = "asked"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a forgetting comes to: how many things of each kind, and the policies that learned of
    them. A dry run and the real one give the same."""

    counts: Mapping[str, int] = field(default_factory=dict)
    policies: Sequence[str] = ()

    def __add__(self, other: Outcome) -> Outcome:
        kinds = sorted({*self.counts, *other.counts})
        return Outcome(
            {kind: self.counts.get(kind, 0) + other.counts.get(kind, 0) for kind in kinds},
            sorted({*self.policies, *other.policies}),
        )


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A forgetting as the tenant keeps it. Times are microseconds since 1970.

    `leaves` are those of the tenant's log, in runs of the first and the last. `erased_us` is when
    the files held nothing of it any more; None while they may. `receipt` is what was signed then.
    """

    id: str
    outcome: Outcome
    leaves: Sequence[tuple[int, int]]
    hidden_us: int
    erased_us: int | None = None
    receipt: JsonObject | None = None

    def with_more(self, outcome: Outcome, leaves: Sequence[int]) -> Forgetting:
        """Return it with what was found later."""
        known = [leaf for first, last in self.leaves for leaf in range(first, last + 1)]
        return Forgetting(
            self.id,
            self.outcome + outcome,
            ranges([*known, *leaves]),
            self.hidden_us,
            self.erased_us,
            self.receipt,
        )
