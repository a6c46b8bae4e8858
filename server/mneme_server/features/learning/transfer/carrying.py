"""What one learner has learned, as another can begin with it.

- A table's rows are its values. All of them are taken; for fine-tuning, as if each had been tried
  once, so that confidence has to be earned anew.
- A linear bandit's arms are posteriors. All of them are taken; for fine-tuning as priors, in which
  each reward of the source counts for a quarter: what it was sure of is believed, and given up when
  rewards speak against it.
- Networks are taken with all that goes with their training, which needs the same spaces, actions
  and settings. With their encoder frozen, only the last layers learn from then on: what a state
  means is known from the source, what to do there is learned in the target.

Actions go by what they are called: they can have other numbers in the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.algorithms.linear import PRIOR_RATE, PRIOR_SHAPE

Learned = Mapping[str, Any]

EVIDENCE = 0.25
"""What a reward of the source counts for where what was learned from it is a prior."""


class Kind(Enum):
    """What is taken over."""

    FULL = "full"
    FREEZE_ENCODER = "freeze_encoder"
    FINE_TUNE = "fine_tune"


def carried(
    learned: Learned, actions: Mapping[int, int], kind: Kind, *, ridge: float = 1.0
) -> tuple[Learned, int]:
    """Return what a learner that was dumped knows, for another one to load, and how many numbers
    that is.

    Args:
        learned: what `dump` returned. It is not changed.
        actions: the target's number of each of the source's actions that the target has.
        kind: whether it is the target's knowledge, or what it begins with.
        ridge: of the target, if it is a linear bandit.

    Raises:
        FailedPrecondition: it cannot be taken over so.
    """
    if "arms" in learned:
        return _arms(learned, actions, kind, ridge)
    if "tries" in learned:
        return _cells(learned, actions, kind)
    return _networks(learned, actions, kind)


def _arms(
    learned: Learned, actions: Mapping[int, int], kind: Kind, ridge: float
) -> tuple[Learned, int]:
    _require_no_encoder(kind, "a linear bandit")
    arms = {
        str(actions[int(number)]): _prior(arm, ridge) if kind is Kind.FINE_TUNE else deepcopy(arm)
        for number, arm in learned["arms"].items()
        if int(number) in actions
    }
    return {"names": list(learned["names"]), "arms": arms}, sum(
        len(arm["mean"]) for arm in arms.values()
    )


def _prior(arm: Mapping[str, Any], ridge: float) -> dict[str, Any]:
    size = len(arm["mean"])
    prior = ridge * np.eye(size)
    evidence = np.linalg.inv(arm["covariance"]) - prior
    covariance = np.linalg.inv(prior + EVIDENCE * evidence)
    shape, rate = arm["noise"]
    return {
        "covariance": (covariance + covariance.T) / 2,
        "mean": arm["mean"].copy(),
        "noise": [
            PRIOR_SHAPE + EVIDENCE * (shape - PRIOR_SHAPE),
            PRIOR_RATE + EVIDENCE * (rate - PRIOR_RATE),
        ],
    }


def _cells(learned: Learned, actions: Mapping[int, int], kind: Kind) -> tuple[Learned, int]:
    _require_no_encoder(kind, "a table")
    kept = np.array([int(one) in actions for one in learned["action"]], dtype=bool)
    found: dict[str, Any] = {
        name: learned[name][kept].copy()
        for name in ("state", "action", "tries", "value", "mean", "squares", "seen")
    }
    found["action"] = np.array([actions[int(one)] for one in found["action"]], dtype=np.int64)
    if kind is Kind.FINE_TUNE:
        found["tries"] = found["seen"] = np.minimum(found["tries"], 1)
        found["mean"] = found["value"].copy()
        found["squares"] = np.zeros(len(found["squares"]))
    found["states"] = list(learned["states"])
    if "last" in learned:
        found["last"] = {}  # Episodes that are under way in the source.
    return found, int(kept.sum())


def _networks(learned: Learned, actions: Mapping[int, int], kind: Kind) -> tuple[Learned, int]:
    if any(source != target for source, target in actions.items()):
        raise FailedPrecondition(
            "networks can be transferred only between sessions that know the same actions in the "
            "same order"
        )
    weights: Mapping[str, NDArray[Any]] = learned["weights"] or {}
    found = deepcopy(dict(learned))
    if kind is not Kind.FULL and found["trainer"] is not None:
        found["trainer"]["frozen"] = kind is Kind.FREEZE_ENCODER
    return found, sum(int(one.size) for one in weights.values())


def _require_no_encoder(kind: Kind, what: str) -> None:
    if kind is Kind.FREEZE_ENCODER:
        raise FailedPrecondition(
            f"freeze_encoder: {what} has no encoder that could be frozen; transfer with fine_tune "
            "or full",
            field="transfer_type",
        )
