"""Forgettings, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.engine.corpus.feed import Ranges, numbers_of, ranges
from mneme_server.engine.corpus.forgetting import Places


@dataclass(frozen=True, slots=True)
class ForgettingOutcome:
    """What a forgetting comes to: how many things of each kind, and the policies that learned of
    them. A dry run and the real one give the same."""

    counts: Mapping[str, int] = field(default_factory=dict)
    policies: Sequence[str] = ()

    def __add__(self, other: ForgettingOutcome) -> ForgettingOutcome:
        kinds = sorted({*self.counts, *other.counts})
        return ForgettingOutcome(
            {kind: self.counts.get(kind, 0) + other.counts.get(kind, 0) for kind in kinds},
            sorted({*self.policies, *other.policies}),
        )


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A forgetting as the tenant keeps it. Times are microseconds since 1970.

    `leaves` are those of the tenant's log, in runs of the first and the last; `places` those in the
    chains of events, likewise, by the digests of their sessions. `mark` is who signed that these
    were forgotten; None while nobody could. `erased_us` is when
    the files held nothing of it any more; None while they may. `receipt` is what was signed then.
    """

    id: str
    outcome: ForgettingOutcome
    leaves: Ranges
    hidden_us: int
    erased_us: int | None = None
    receipt: JsonObject | None = None
    places: Places = field(default_factory=dict)
    mark: JsonObject | None = None

    def with_more(
        self, outcome: ForgettingOutcome, leaves: Sequence[int], places: Places
    ) -> Forgetting:
        """Return it with what was found later, unmarked."""
        return replace(
            self,
            outcome=self.outcome + outcome,
            leaves=ranges([*numbers_of(self.leaves), *leaves]),
            places={
                name: list(ranges(numbers_of((*self.places.get(name, ()), *places.get(name, ())))))
                for name in {**self.places, **places}
            },
            mark=None,
        )

    def marked(self, tenant_id: str) -> str:
        """Return what is signed when it is hidden, in canonical JSON: what marks stand for it."""
        return canonical_json(
            {
                "type": "mneme.hidden.v1",
                "tenant_id": tenant_id,
                "id": self.id,
                "leaves": [[str(first), str(last)] for first, last in self.leaves],
                "places": {
                    name: [[str(first), str(last)] for first, last in runs]
                    for name, runs in self.places.items()
                },
            }
        )
