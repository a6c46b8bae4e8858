"""Off-policy evaluation: would a learned policy have done better than what was done, and how sure
is that?

Every figure comes from decisions that the policy had not learned from when it was asked about
them. A policy that can be learned anew is taught the episodes in their order, and asked before each
of the last five tenths what it would do there (progressive validation: Blum, Kalai and Langford,
1999). Unlike the folds of a cross-validation, whose errors depend on each other, these errors are
martingale differences, so that their interval holds; also if the behaviour itself was learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import Learner
from mneme_server.features.learning.algorithms.choice import chosen
from mneme_server.features.learning.trust.behaviour import certain
from mneme_server.features.learning.trust.blocks import Ask, Basis, Blocks, Episode
from mneme_server.features.learning.trust.estimates import (
    ValueEstimate,
    WeightedEpisodes,
    doubly_robust,
    mean_of,
    weighted,
)

Vector = NDArray[np.float64]

LEAST_EFFECTIVE = 50
"""Fewer effective episodes are refused."""
_ENOUGH = 100
"""As many are enough, so that earlier ones are left out."""
_BLOCKS = 5
_FIRST = 0.5
"""The share of the episodes that are only learned from."""
_LEAST_OVERLAP = 0.9
_DETERMINED = 0.95
"""The share of decisions that follow from the state from which on nothing was left to chance."""


class Propensities(Enum):
    """Where the probabilities of what was done come from."""

    RECORDED = "recorded"
    ESTIMATED = "estimated"
    PARTLY_ESTIMATED = "partly estimated"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a policy is worth, per episode: its discounted return, with 95 % intervals.

    Args:
        episodes: on how many it was judged.
        decisions: how many decisions these hold.
        effective: how many equally weighted episodes they are worth.
        overlap: the share of what the policy would do that the behaviour did, too, as far as the
            weights show; about 1 unless the policy does what was never done.
        propensities: where the probabilities of what was done come from.
        behaviour: what was earned.
        weighted: what the policy would have earned, by weighted importance sampling.
        doubly_robust: the same, doubly robust.
        gain: how much more than what was done: doubly robust, paired by episode.
        modelled: what a model of the rewards alone thinks of it; it has no interval.
        refused: why there are no estimates, a sentence; empty if there are.
    """

    episodes: int = 0
    decisions: int = 0
    effective: float = 0.0
    overlap: float = 0.0
    propensities: Propensities = Propensities.RECORDED
    behaviour: ValueEstimate | None = None
    weighted: ValueEstimate | None = None
    doubly_robust: ValueEstimate | None = None
    gain: ValueEstimate | None = None
    modelled: ValueEstimate | None = None
    refused: str = ""


def evaluate_learning(basis: Basis, episodes: Sequence[Episode], learner: Learner) -> Evaluation:
    """Evaluate what an algorithm learns.

    The estimates are of the policy on its way through the last tenths of the episodes: as many of
    the last five as are worth a hundred effective ones, or all five. Their intervals are of the
    policy that has learned from all episodes: they are as much wider as it may have changed since.

    Args:
        basis: of the session.
        episodes: in the order in which they began; all ended.
        learner: a new one. It is taught the episodes.
    """
    cuts = np.linspace(_FIRST * len(episodes), len(episodes), _BLOCKS + 1).astype(int).tolist()
    chance = np.random.default_rng(0)
    blocks = Blocks(basis, episodes)
    known = 0
    for first, last in pairwise(cuts):
        learner.learn(list(chain.from_iterable(episodes[known:first])))
        known = first
        if 0 < first < last:
            blocks.judge(
                lambda questions: chosen(learner, questions, explore=False, chance=chance),
                first,
                last,
            )
    if blocks.judged >= LEAST_EFFECTIVE:
        learner.learn(list(chain.from_iterable(episodes[known:])))
        blocks.compare(lambda questions: chosen(learner, questions, explore=False, chance=chance))
    return _evaluation(blocks)


def evaluate_policy(
    basis: Basis, episodes: Sequence[Episode], policy: Ask, learned_from: int
) -> Evaluation:
    """Evaluate a policy that is not learned anew, on what came after it.

    Args:
        basis: of the session.
        episodes: in the order in which they began; all ended.
        policy: the policy; it must have learned from none but the first `learned_from`.
        learned_from: how many of the episodes it may have learned from.
    """
    blocks = Blocks(basis, episodes)
    if learned_from < len(episodes):
        blocks.judge(policy, learned_from, len(episodes))
    return _evaluation(blocks)


def _evaluation(blocks: Blocks) -> Evaluation:
    if blocks.judged < LEAST_EFFECTIVE:
        return Evaluation(
            episodes=blocks.judged,
            refused=f"Only {blocks.judged} of the session's episodes came after what the policy "
            f"had learned from; at least {LEAST_EFFECTIVE} are needed.",
        )
    known = blocks.recorded()
    missing = np.isnan(known)
    unusable = certain(known[blocks.free]) or blocks.contradiction()
    if unusable:
        return _not_judged(blocks, unusable)
    if missing.any():
        kind = Propensities.ESTIMATED if missing.all() else Propensities.PARTLY_ESTIMATED
        if blocks.determined >= _DETERMINED:
            return _not_judged(blocks, _followed(blocks.determined))
        return _estimates(_latest(blocks, np.where(missing, blocks.estimated(), known)), kind)
    data = _latest(blocks, known)
    if _refused(data) and blocks.determined < _DETERMINED:
        # A behaviour that was nearly certain each time, but not always of the same: over time its
        # choices were more even, and as an average they weigh more evenly.
        guessed = _latest(blocks, blocks.estimated())
        if not _refused(guessed):
            return _estimates(guessed, Propensities.ESTIMATED)
    return _estimates(data, Propensities.RECORDED)


def _not_judged(blocks: Blocks, why: str) -> Evaluation:
    returns = blocks.returns
    return Evaluation(
        episodes=len(returns),
        behaviour=mean_of(returns, len(returns), float(np.ptp(returns))),
        refused=why,
    )


def _followed(share: float) -> str:
    return (
        f"In {share:.0%} of the decisions that were compared, what was done is what was done in the"
        " most similar state, too: it followed from the state, so that what anything else would"
        " have brought there is not known."
    )


def _latest(blocks: Blocks, propensities: Vector) -> WeightedEpisodes:
    """Return the latest blocks that are enough together, whose policies have learned the most; all
    if none are. Rewards play no part in it."""
    data = blocks.weighed(propensities)
    for beginning in reversed(blocks.beginnings):
        if data.since(beginning).effective >= _ENOUGH:
            return data.since(beginning)
    return data


def _estimates(data: WeightedEpisodes, propensities: Propensities) -> Evaluation:
    returns, weights = data.returns, data.weights
    spread = float(np.ptp(returns))
    found = Evaluation(
        episodes=len(returns),
        decisions=int(data.lengths.sum()),
        effective=data.effective,
        overlap=min(1.0, float(weights.mean())),
        propensities=propensities,
        behaviour=mean_of(returns, len(returns), spread),
        modelled=ValueEstimate(float(data.expected[data.starts].mean())),
    )
    refused = _refused(data)
    if refused:
        return replace(found, refused=refused)
    robust, drift = doubly_robust(data), data.drift
    return replace(
        found,
        weighted=mean_of(weighted(data), data.effective, spread, drift),
        doubly_robust=mean_of(robust, data.effective, spread, drift),
        gain=mean_of(robust - returns, data.effective, spread, drift),
    )


def _refused(data: WeightedEpisodes) -> str:
    """Return why there can be no estimates; empty if there can."""
    weights = data.weights
    if data.effective < LEAST_EFFECTIVE:
        return (
            f"The {len(weights)} episodes are worth {data.effective:.0f} of those that the policy "
            f"would have played; at least {LEAST_EFFECTIVE} are needed."
        )
    mean = float(weights.mean())
    uncertain = 4 * float(weights.std()) / np.sqrt(len(weights))
    if mean + uncertain < _LEAST_OVERLAP:
        return (
            f"{1 - mean:.0%} of what the policy would do was never done, so that nothing is known "
            "of it."
        )
    return ""


_FROM = {
    Propensities.RECORDED: "the probabilities of what was done are those recorded",
    Propensities.ESTIMATED: "the probabilities of what was done are estimated",
    Propensities.PARTLY_ESTIMATED: "some probabilities of what was done are estimated",
}


def summary(found: Evaluation) -> str:
    """Return what an evaluation says in a few sentences."""
    if found.doubly_robust is None or found.gain is None:
        model = (
            f" A model of the rewards puts the policy at {found.modelled.value:.3g}."
            if found.modelled is not None
            else ""
        )
        return f"What the policy would have earned is not known. {found.refused}{model}"
    return (
        f"The policy would have earned {_told(found.doubly_robust)} per episode, "
        f"{_verdict(found.gain)}. It was judged by {found.episodes} episodes that it had not "
        f"learned from, worth {found.effective:.0f} equally weighted ones; "
        f"{_FROM[found.propensities]}."
    )


def _verdict(gain: ValueEstimate) -> str:
    assert gain.low is not None
    assert gain.high is not None
    more = f"{abs(gain.value):.3g} {'more' if gain.value >= 0 else 'less'} than what was done"
    if gain.low > 0:
        return f"{more}, and surely more ({gain.low:.3g} to {gain.high:.3g})"
    if gain.high < 0:
        return f"{more}, and surely less ({gain.low:.3g} to {gain.high:.3g})"
    return f"{more}, but that may be chance ({gain.low:.3g} to {gain.high:.3g})"


def _told(estimate: ValueEstimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"
