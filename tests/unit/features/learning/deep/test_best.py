"""The best policy so far, kept while learning goes on."""

from __future__ import annotations

import numpy as np
from mneme_server.features.learning.algorithms.algorithm import Transition
from mneme_server.features.learning.deep.best import BestWeights


def weights(number: float) -> dict[str, np.ndarray]:
    return {"policy.0.weight": np.array([[number]], np.float32)}


def play(kept: BestWeights, policy: float | None, *returns: float) -> None:
    for earned in returns:
        now = None if policy is None else weights(policy)
        kept.note(Transition([0.0], (0.0,), earned - 1, [0.0], terminated=False), now)
        kept.note(Transition([0.0], (0.0,), 1.0), now)


def test_the_weights_of_the_best_five_episodes_choose_when_the_newest_are_surely_worse() -> None:
    kept = BestWeights()
    play(kept, None, 100.0)  # By chance, before there was a policy.
    play(kept, 1.0, -5.0, -4.0, -6.0, -5.0)
    assert kept.told(1.0) is None
    play(kept, 1.0, -5.0)
    play(kept, 2.0, -1.0, -1.2, -0.9, -1.1, -1.0)
    play(kept, 3.0, -1.2, -1.0, -1.1, -1.3, -1.0)
    assert kept.instead is None  # Hardly worse.
    play(kept, 4.0, -700.0, -650.0, -741.0, -720.0, -690.0)
    assert kept.instead is not None
    assert kept.instead["policy.0.weight"] == 2.0
    found = kept.told(0.5)
    assert found is not None
    assert (found.mean, found.episode, found.chooses) == (-1.04 / 0.5, 11, True)
    assert found.now == -700.2 / 0.5
    play(kept, 5.0, -0.5, -0.5, -0.5, -0.5, -0.5)
    assert kept.instead is None


def test_what_is_kept_survives_being_stored() -> None:
    kept, again = BestWeights(), BestWeights()
    play(kept, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0)
    play(kept, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    again.load(kept.dump())
    assert again.told(1.0) == kept.told(1.0)
    assert again.instead is not None
    assert again.instead["policy.0.weight"] == 1.0
