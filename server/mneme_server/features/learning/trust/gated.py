"""A gate at work: its baseline, and the evidence of episodes as they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.learner import Learner, Question, Transition, number_of
from mneme_server.features.learning.trust.baselines import Baseline, probabilities
from mneme_server.features.learning.trust.gate import Comparison, Gate, Verdict, compare_taken

Vector = NDArray[np.float64]

TRIED = 0.1
"""The share of exploring answers that are given by the one that is not trusted."""
_MOST_OPEN = 1_000


@dataclass(slots=True)
class _Episode:
    """An episode under way: how much likelier the policy and the baseline are to play it so than
    what played it, and its discounted return. `known` is whether they can be told."""

    policy: float = 1.0
    baseline: float = 1.0
    earned: float = 0.0
    worth: float = 1.0
    known: bool = True


@dataclass(slots=True)
class Gated:
    """A gate with what it needs to judge.

    Args:
        gate: weighs the evidence.
        discount: what a reward one step later is worth; None: each step is an episode.
        baseline: what the policy is held against; None until it is made again after a restart, and
            no evidence is collected until then.
        under_way: the episodes under way, by actor.
    """

    gate: Gate
    discount: float | None
    baseline: Baseline | None = None
    under_way: dict[str, _Episode] = field(default_factory=dict)

    def observe(
        self, learner: Learner, transitions: Sequence[Transition], actions: Sequence[int]
    ) -> None:
        """Take transitions into account that the learner has not learned from yet.

        Args:
            learner: the policy.
            transitions: in their order.
            actions: the numbers of all actions that are known.
        """
        if self.baseline is None:
            return
        questions = [
            Question(one.state, one.available or actions, one.actor) for one in transitions
        ]
        for one, question, policy in zip(
            transitions, questions, probabilities(learner, questions), strict=True
        ):
            self._observe(one, question, policy, self.baseline)

    def missed(self, actors: Iterable[str]) -> None:
        """Note whose episodes are under way, of which nothing was seen so far: what is left of one
        is no episode, and not judged."""
        self.under_way = {actor: _Episode(known=False) for actor in actors}

    def _observe(
        self, one: Transition, question: Question, policy: Vector, baseline: Baseline
    ) -> None:
        # Where the baseline was not allowed, nothing is told of it.
        may = question.allowed if baseline.answers(question) else ()
        places = [n for n, number in enumerate(may) if number == number_of(one.action)]
        other = baseline.probabilities(question) if places else policy
        if self.discount is None or (one.ends and one.actor not in self.under_way):
            if places:
                told = compare_taken(policy, other, places[0], one.probability)
                if told is not None:
                    self.gate.observe(told, one.reward)
            return
        episode = self.under_way.setdefault(one.actor, _Episode())
        if places and one.probability:
            episode.policy *= float(policy[places[0]]) / one.probability
            episode.baseline *= float(other[places[0]]) / one.probability
        certain = one.probability is None or one.probability >= 1
        if not places or (certain and (policy != other).any()):
            episode.known = False
        episode.earned += episode.worth * one.reward
        episode.worth *= self.discount
        if one.ends:
            del self.under_way[one.actor]
            if episode.known:
                weights = Comparison(
                    episode.policy, episode.baseline, 1.0, float("inf"), float("inf")
                )
                self.gate.observe(weights, episode.earned)
        elif len(self.under_way) > _MOST_OPEN:
            del self.under_way[next(iter(self.under_way))]

    def mixture(self, policy: Vector, baseline: Vector, *, explore: bool) -> Vector:
        """Return the probability of each action: that of the one that is trusted or, exploring, now
        and then of the other one."""
        now, other = (policy, baseline) if self.gate.trusts_policy else (baseline, policy)
        return (1 - TRIED) * now + TRIED * other if explore else now

    def verdict(self) -> Verdict:
        """Say who answers, and why."""
        assert self.baseline is not None
        return self.gate.verdict(self.baseline.name)

    def dump(self) -> dict[str, Any]:
        """Return all that it knows but its baseline, as JSON. Episodes under way are left out: see
        `missed`."""
        return {"gate": self.gate.dump(), "discount": self.discount}

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> Gated:
        """Return the one that `dump` was called on."""
        return cls(Gate.load(known["gate"]), known["discount"])
