"""Evaluations in words."""

from __future__ import annotations

from mneme_server.features.learning.trust.estimates import Estimate
from mneme_server.features.learning.trust.evaluation import Evaluation, Propensities

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


def _verdict(gain: Estimate) -> str:
    assert gain.low is not None
    assert gain.high is not None
    more = f"{abs(gain.value):.3g} {'more' if gain.value >= 0 else 'less'} than what was done"
    if gain.low > 0:
        return f"{more}, and surely more ({gain.low:.3g} to {gain.high:.3g})"
    if gain.high < 0:
        return f"{more}, and surely less ({gain.low:.3g} to {gain.high:.3g})"
    return f"{more}, but that may be chance ({gain.low:.3g} to {gain.high:.3g})"


def _told(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"
