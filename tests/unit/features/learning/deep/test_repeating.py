"""What a network learns depends on its seed and the transitions alone: not on how many come at
once, nor on when it is saved, ended and begun again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

from mneme_server.features.learning.algorithms.algorithm import Transition
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.sessions.serialization import decoded, encoded
from mneme_server.features.learning.spaces import OpenLabels, OpenObject, Space
from support.deep import NAMED, STATES, learner_of

pytestmark = pytest.mark.slow

COUNT = 330
"""Transitions: more than one rollout of each actor, and some that lie ready at the end."""
OPEN = ["dqn", "ppo", "a3c"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", sorted(NAMED))
def test_however_transitions_come_together_the_same_is_learned(name: str, seed: int) -> None:
    told = _told(boxed=not NAMED[name].discrete)
    assert not _differing(_learned(name, _one_by_one(told)), _learned(name, _in_parts(told, seed)))


@pytest.mark.parametrize("name", sorted(NAMED))
def test_whenever_it_is_saved_and_begun_again_the_same_is_learned(name: str) -> None:
    told = _told(boxed=not NAMED[name].discrete)
    often = _learned(name, _in_parts(told, 3), begun_again=True)
    assert not _differing(often, _learned(name, _one_by_one(told)))


@pytest.mark.parametrize("name", OPEN)
def test_so_it_is_where_facts_and_actions_appear_meanwhile(name: str) -> None:
    told = _open()
    spaces: dict[str, Any] = {"states": OpenObject(), "actions": OpenLabels(), "features": 8}
    one = _learned(name, _one_by_one(told), **spaces)
    assert not _differing(one, _learned(name, _in_parts(told, 4), **spaces))
    often = _learned(name, _in_parts(told, 5), begun_again=True, **spaces)
    assert not _differing(one, often)


def _learned(
    name: str,
    parts: Sequence[Sequence[Transition]],
    *,
    begun_again: bool = False,
    actions: Space | None = None,
    states: Space = STATES,
    **settings: Any,
) -> dict[str, Any]:
    """All that a learner knows after it was told transitions in parts."""

    def made(seed: int) -> DeepLearner:
        return learner_of(name, actions, states=states, seed=seed, **settings)

    learner = made(1)
    for number, part in enumerate(parts):
        learner.learn(part)
        if begun_again and number % 3 == 0:
            learner, before = made(2), learner  # Everything at random is in what was saved, too.
            learner.load(decoded(encoded(before.dump())))
    learner.train(7)
    return decoded(encoded(learner.dump()))


def _differing(one: Any, other: Any, name: str = "") -> list[str]:
    """The names of what is not the same in both, to the last bit."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in _differing(one[key], other[key], f"{name}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for n, pair in pairs for found in _differing(*pair, f"{name}/{n}")]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return [] if (one.shape, one.tobytes()) == (other.shape, other.tobytes()) else [name]
    return [] if one == other else [name]


def _one_by_one(told: Sequence[Transition]) -> list[Sequence[Transition]]:
    return [[one] for one in told]


def _in_parts(told: Sequence[Transition], seed: int) -> list[Sequence[Transition]]:
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(told), 14)).tolist()
    return [told[a:b] for a, b in zip([0, *cuts], [*cuts, len(told)], strict=True) if a < b]


def _told(*, boxed: bool) -> list[Transition]:
    """Episodes of three actors, mixed, some of them broken off."""
    chance = np.random.default_rng(9)
    found, at = [], dict.fromkeys(("ann", "bob", "eve"), 0.0)
    for _ in range(COUNT):
        actor = str(chance.choice(list(at)))
        state, at[actor] = at[actor], float(chance.uniform(-1, 1))
        ends, allowed = float(chance.random()), [0, 1] if chance.random() < 0.9 else [1]
        found.append(
            Transition(
                [state],
                (float(chance.uniform(-2, 2)),) if boxed else int(chance.integers(2)),
                float(chance.normal()),
                [at[actor]],
                terminated=ends < 0.1,
                truncated=0.1 <= ends < 0.15,
                actor=actor,
                probability=float(chance.uniform(0.2, 0.8)),
                allowed=[] if boxed else allowed,
            )
        )
    return found


def _open() -> list[Transition]:
    """Steps among more and more tasks, with more and more actions."""
    chance = np.random.default_rng(9)
    found = []
    for number in range(COUNT):
        known = 2 + number // 110
        kinds = [f"kind {n}" for n in chance.integers(0, 2 + number // 20, 2)]
        action = int(chance.integers(known))
        found.append(
            Transition(
                {"kind": kinds[0], "size": float(chance.random())},
                action,
                float(chance.normal()),
                {"kind": kinds[1], "size": float(chance.random())},
                terminated=bool(chance.random() < 0.2),
                probability=1 / known,
                available=list(range(known)),
            )
        )
    return found
