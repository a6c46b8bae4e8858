"""The gate that lets a learned policy answer in the place of a baseline.

Each decision that was taken with known probabilities is evidence of what the policy gains over the
baseline, whichever of them answered. Let p and b be how much more often the policy or the baseline
takes the action that was taken than the other one does, divided by how often the behaviour took it,
and d how much the two differ at all (their total variation). Of the gain, rewards being from 0 to
1, two estimates are right on average:

    p * reward + b * (1 - reward) - d,      (p - b) * (reward - c).

The first is never below -1, however rare the action was. The second varies less, c being the mean
of the rewards before. A confidence sequence takes both (Karampatziakis, Mineiro and Ramdas,
"Off-policy confidence sequences", 2021, who propose such gates). Where the two policies agree, the
gain is exactly 0.

The policy is asked before the reward is known: it has not learned from what it is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Learner,
    Transition,
    number_of,
)
from mneme_server.features.learning.trust.baselines import PolicyBaseline, probabilities
from mneme_server.statistics.sequence import LowerBound, Sample

Vector = NDArray[np.float64]

_WINDOW = 500
"""After so many decisions the watch for a policy that has become worse begins anew."""
_BOUNDS = ("gains", "losses", "recent")
"""The fields of a gate that are confidence sequences."""
TRIED = 0.1
"""The share of exploring answers that are given by the one that is not trusted."""
_MOST_OPEN = 1_000


@dataclass(frozen=True, slots=True)
class GateComparison:
    """What a decision will tell about policy and baseline once its reward is known.

    Args:
        policy: the p of the module's formulas.
        baseline: the b.
        difference: the d.
        most_policy: the largest p that another action would have had.
        most_baseline: the largest b.
    """

    policy: float
    baseline: float
    difference: float
    most_policy: float
    most_baseline: float

    def sample(self, reward: float, center: float) -> Sample:
        """Return the two estimates of the gain for a reward from 0 to 1."""
        return Sample(
            bounded=self.policy * reward + self.baseline * (1 - reward) - self.difference,
            precise=(self.policy - self.baseline) * (reward - center),
            least=max(self.most_policy * center, self.most_baseline * (1 - center)),
        )

    def swapped(self) -> GateComparison:
        """Return the comparison of the baseline with the policy."""
        return GateComparison(
            policy=self.baseline,
            baseline=self.policy,
            difference=self.difference,
            most_policy=self.most_baseline,
            most_baseline=self.most_policy,
        )


def compare(
    policy: Vector, baseline: Vector, behaviour: Vector, taken: int
) -> GateComparison | None:
    """Compare two policies in one state; None if the decision can tell nothing about them, because
    one would do what could not happen.

    Args:
        policy: the probability with which the policy chooses each action.
        baseline: the same of the baseline.
        behaviour: the same of whatever chose.
        taken: the place of the action that it chose.
    """
    more = np.maximum(policy - baseline, 0.0)
    less = np.maximum(baseline - policy, 0.0)
    differ = more + less > 1e-12
    if (behaviour[differ] <= 0).any():
        return None
    chances = np.where(differ, behaviour, 1.0)
    policy_weights, baseline_weights = more / chances, less / chances
    return GateComparison(
        policy=float(policy_weights[taken]),
        baseline=float(baseline_weights[taken]),
        difference=float(more.sum()),
        most_policy=float(policy_weights.max()),
        most_baseline=float(baseline_weights.max()),
    )


def compare_taken(
    policy: Vector, baseline: Vector, taken: int, chance: float | None
) -> GateComparison | None:
    """Compare two policies where only the probability of the action that was taken is known.

    A behaviour that was not certain is taken to be able to do anything. None if it was certain, or
    its probability is not known, and the two policies differ.
    """
    more = np.maximum(policy - baseline, 0.0)
    less = np.maximum(baseline - policy, 0.0)
    difference = float(more.sum())
    if difference < 1e-12:
        return GateComparison(0.0, 0.0, 0.0, 0.0, 0.0)
    if chance is None or chance >= 1:
        return None
    return GateComparison(
        policy=float(more[taken]) / chance,
        baseline=float(less[taken]) / chance,
        difference=difference,
        most_policy=float("inf"),
        most_baseline=float("inf"),
    )


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What the gate says.

    Args:
        trusts_policy: whether the policy answers.
        decisions: how many there are to judge by.
        gain: what the policy earned more than the baseline, per decision, as estimated.
        low: the lower bound of the gain, valid at every look.
        high: the upper bound.
        why: the same in a sentence.
        clipped: how many rewards were beyond the range that the gate was told.
    """

    trusts_policy: bool
    decisions: int
    gain: float
    low: float
    high: float
    why: str
    clipped: int = 0


@dataclass(slots=True)
class Gate:
    """Weighs the evidence. Not thread-safe.

    Args:
        low: the smallest reward that is told apart; smaller ones count as this.
        high: the largest.
        level: with which probability the policy is ever trusted though it gains nothing.
        begun: how often it has begun to collect evidence; anew when a policy that was trusted has
            become worse. Each time it is stricter, so that `level` holds for all times together.
        clipped: how many rewards were beyond `low` or `high`.
        rewards: the sum of the rewards since then, in ranges of rewards.
        gains: the evidence of what the policy gains, in ranges of rewards.
        losses: the evidence of what it loses.
        recent: the same, of late.
    """

    low: float = -1.0
    high: float = 1.0
    level: float = 0.05
    begun: int = 1
    clipped: int = 0
    rewards: float = 0.0
    gains: LowerBound = field(default_factory=LowerBound)
    losses: LowerBound = field(default_factory=LowerBound)
    recent: LowerBound = field(default_factory=LowerBound)

    def observe(self, comparison: GateComparison, reward: float) -> None:
        """Take a decision into account, now that its reward is known."""
        share = (reward - self.low) / (self.high - self.low)
        self.clipped += not 0.0 <= share <= 1.0
        share = min(1.0, max(0.0, share))
        center = (self.rewards + 0.5) / (self.gains.count + 1)
        loss = comparison.swapped().sample(share, center)
        trusted = self.trusts_policy
        self.gains.observe(comparison.sample(share, center))
        self.losses.observe(loss)
        self.rewards += share
        if self.recent.count >= _WINDOW:
            self.recent = LowerBound()
        self.recent.observe(loss)
        if trusted and self.recent.is_positive(self.level):
            self.begun += 1
            self.rewards = 0.0
            self.gains, self.losses, self.recent = LowerBound(), LowerBound(), LowerBound()

    def verdict(self, baseline: str) -> GateVerdict:
        """Say who answers.

        Args:
            baseline: its name, for the sentence, like "the action 'cache'".
        """
        scale = self.high - self.low
        found = GateVerdict(
            trusts_policy=self.trusts_policy,
            decisions=self.gains.count,
            gain=self.gains.mean * scale,
            low=self.gains.at(self._level) * scale,
            high=-self.losses.at(self._level) * scale,
            why="",
            clipped=self.clipped,
        )
        return replace(found, why=self._sentence(found, baseline) + self._beyond())

    def _beyond(self) -> str:
        """Say how many rewards count as others than they were; empty if none does."""
        if not self.clipped:
            return ""
        return (
            f" {self.clipped} of the rewards were beyond {self.low:g} to {self.high:g}"
            " (lowest_reward, highest_reward) and count as the nearer of the two, so that the gain"
            " is not that of the rewards."
        )

    @property
    def _level(self) -> float:
        """The level of this beginning; those of all beginnings sum to `level`."""
        return self.level / (self.begun * (self.begun + 1))

    @property
    def trusts_policy(self) -> bool:
        """Whether the policy answers."""
        return self.gains.is_positive(self._level)

    def _sentence(self, found: GateVerdict, baseline: str) -> str:
        if not found.decisions:
            known = "nothing is known yet of what the policy gains over it"
        else:
            known = (
                f"{found.decisions} decisions put what the policy gains over it at "
                f"{found.gain:.3g} each, and between {found.low:.3g} and {found.high:.3g} with a "
                f"confidence of {1 - 2 * self._level:.1%}"  # Each bound may fail on its own.
            )
        if found.trusts_policy:
            return f"The policy answers instead of {baseline}: {known}."
        again = ", since the policy became worse" if self.begun > 1 else ""
        return f"{baseline[:1].upper()}{baseline[1:]} answers{again}: {known}."

    def dump(self) -> dict[str, Any]:
        """Return all that it knows, as JSON."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return known | {name: known[name].dump() for name in _BOUNDS}

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> Gate:
        """Return the gate that `dump` was called on."""
        return cls(**{**known, **{name: LowerBound.load(known[name]) for name in _BOUNDS}})


@dataclass(slots=True)
class _GatedEpisode:
    """An episode under way: how much likelier the policy and the baseline are to play it so than
    what played it, and its discounted return. `known` is whether they can be told."""

    policy: float = 1.0
    baseline: float = 1.0
    earned: float = 0.0
    worth: float = 1.0
    known: bool = True


@dataclass(slots=True)
class GateAtWork:
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
    baseline: PolicyBaseline | None = None
    under_way: dict[str, _GatedEpisode] = field(default_factory=dict)

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
            ActionQuestion(one.state, one.available or actions, one.actor) for one in transitions
        ]
        for one, question, policy in zip(
            transitions, questions, probabilities(learner, questions), strict=True
        ):
            self._observe(one, question, policy, self.baseline)

    def missed(self, actors: Iterable[str]) -> None:
        """Note whose episodes are under way, of which nothing was seen so far: what is left of one
        is no episode, and not judged."""
        self.under_way = {actor: _GatedEpisode(known=False) for actor in actors}

    def _observe(
        self, one: Transition, question: ActionQuestion, policy: Vector, baseline: PolicyBaseline
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
        episode = self.under_way.setdefault(one.actor, _GatedEpisode())
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
                weights = GateComparison(
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

    def verdict(self) -> GateVerdict:
        """Say who answers, and why."""
        assert self.baseline is not None
        return self.gate.verdict(self.baseline.name)

    def dump(self) -> dict[str, Any]:
        """Return all that it knows but its baseline, as JSON. Episodes under way are left out: see
        `missed`."""
        return {"gate": self.gate.dump(), "discount": self.discount}

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> GateAtWork:
        """Return the one that `dump` was called on."""
        return cls(Gate.load(known["gate"]), known["discount"])
