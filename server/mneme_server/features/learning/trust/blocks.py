"""Episodes, judged block by block by policies that had not learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Choice,
    Transition,
    number_of,
)
from mneme_server.features.learning.spaces import Space
from mneme_server.features.learning.trust.baselines import FOLDS, LEAST, estimated
from mneme_server.features.learning.trust.behaviour import contradiction, determined, foretold
from mneme_server.features.learning.trust.estimates import WeightedEpisodes, discounted
from mneme_server.features.learning.trust.regression import (
    RegressionEncoder,
    RegressionSteps,
    fitted,
)

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]
Ask: TypeAlias = Callable[[Sequence[ActionQuestion]], Sequence[Choice]]
"""A policy: what it chooses in each of some states."""
Episode: TypeAlias = Sequence[Transition]
"""The transitions of an actor from the first to the one that ended it, in their order."""

_MOST_FITTED = 5_000
"""Decisions that the model of what actions are worth is fitted to: the newest."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What is the same for all policies of a session.

    Args:
        space: of the states.
        discount: what a reward one step later is worth.
    """

    space: Space
    discount: float = 1.0


@dataclass(slots=True)
class _JudgedDecisions:
    """What is known of some decisions once a policy was asked about them, one row each."""

    target: list[Vector] = field(default_factory=list)
    policy: list[Matrix] = field(default_factory=list)
    values: list[Matrix] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)  # The first episode of each block.
    last: int = 0
    since: Matrix | None = None  # What the policy gained since, by two models; a row each.


class Blocks:
    """Judges blocks of episodes, each by a policy that knows only earlier ones.

    Args:
        basis: of the session.
        episodes: in the order in which they began; all ended.
    """

    def __init__(self, basis: Basis, episodes: Sequence[Episode]) -> None:
        self._basis = basis
        self._episodes = episodes
        flat = list(chain.from_iterable(episodes))
        self._starts = np.cumsum([0, *map(len, episodes)])
        self._actions = sorted(
            {number_of(one.action) for one in flat}.union(
                *({*one.available, *one.allowed} for one in flat)
            )
        )
        self._column = {action: place for place, action in enumerate(self._actions)}
        self._flat = flat
        self._judged = _JudgedDecisions()
        if not flat:
            return
        self._encoder = RegressionEncoder(basis.space, [one.state for one in flat])
        self._states = self._encoder.encode([one.state for one in flat])
        self._places = np.array([self._column[number_of(one.action)] for one in flat])
        self._rewards = np.array([one.reward for one in flat])
        self._goes_on = np.array([not one.terminated for one in flat])
        self._following = np.zeros_like(self._states)
        if self._goes_on.any():
            led = [one.next_state for one in flat if not one.terminated]
            self._following[self._goes_on] = self._encoder.encode(led)

    def judge(self, policy: Ask, first: int, last: int) -> None:
        """Ask a policy that knows only episodes before the one with number `first` about those up
        to before `last`."""
        judged = self._judged
        judged.firsts.append(first)
        judged.last = last
        mine = slice(int(self._starts[first]), int(self._starts[last]))
        now = self._asked(policy, [self._at_it(one) for one in self._flat[mine]])
        worth = self._worth(policy, int(self._starts[first]))
        judged.target.append(now[np.arange(len(now)), self._places[mine]])
        judged.policy.append(now)
        judged.values.append(worth(self._states[mine]))

    def compare(self, policy: Ask) -> None:
        """Ask the policy that has learned from all episodes about those that were judged.

        What it gained on the policies that were, nobody saw. Two models have an opinion: that of
        all decisions, which it learned from, too, and so thinks too well of it, and those of the
        decisions before each block, which know least of what it learned since.
        """
        mine = self._mine
        changed = self._asked(policy, [self._at_it(one) for one in self._flat[mine]])
        changed -= np.concatenate(self._judged.policy)
        worth = self._worth(policy, len(self._flat))
        models = (worth(self._states[mine]), np.concatenate(self._judged.values))
        self._judged.since = np.array([(changed * model).sum(axis=1) for model in models])

    def _worth(self, policy: Ask, known: int) -> Callable[[Matrix], Matrix]:
        """Return a model of what actions are worth, from the decisions before `known`."""
        mine = slice(max(0, known - _MOST_FITTED), known)
        if known == 0:
            return lambda states: np.zeros((len(states), len(self._actions)))
        steps = RegressionSteps(
            states=self._states[mine],
            places=self._places[mine],
            rewards=self._rewards[mine],
            following=self._following[mine],
            policy=self._after(policy, mine),
            goes_on=self._goes_on[mine],
            discount=self._basis.discount,
            horizon=max(map(len, self._episodes)),
            broken_off=any(one.truncated for one in self._flat),
        )
        return fitted(steps)

    def _after(self, policy: Ask, mine: slice) -> Matrix:
        """Return what the policy would do where decisions led; 0 where nothing follows."""
        found = np.zeros((mine.stop - mine.start, len(self._actions)))
        goes_on = self._goes_on[mine]
        led = [one for one in self._flat[mine] if not one.terminated]
        if led:
            found[goes_on] = self._asked(policy, [self._after_it(one) for one in led])
        return found

    def _at_it(self, one: Transition) -> ActionQuestion:
        return ActionQuestion(one.state, one.available or self._actions, one.actor)

    def _after_it(self, one: Transition) -> ActionQuestion:
        return ActionQuestion(one.next_state, one.allowed or self._actions, one.actor)

    def _asked(self, policy: Ask, questions: Sequence[ActionQuestion]) -> Matrix:
        """Return the policy's probability of each action, shape (questions, actions)."""
        found = np.zeros((len(questions), len(self._actions)))
        for row, question, choice in zip(found, questions, policy(questions), strict=True):
            row[[self._column[action] for action in question.allowed]] = choice.policy
        return found

    @property
    def judged(self) -> int:
        """How many episodes were judged."""
        return self._judged.last - self._judged.firsts[0] if self._judged.firsts else 0

    @property
    def beginnings(self) -> list[int]:
        """Where each block begins among the judged episodes."""
        firsts = self._judged.firsts
        return [first - firsts[0] for first in firsts]

    @property
    def _mine(self) -> slice:
        """The decisions of the judged episodes."""
        judged = self._judged
        return slice(int(self._starts[judged.firsts[0]]), int(self._starts[judged.last]))

    def recorded(self) -> Vector:
        """Return the probability with which each decision of the judged episodes was taken, NaN
        where it is not known."""
        return np.array([one.probability or np.nan for one in self._flat[self._mine]])

    def contradiction(self) -> str:
        """Return how what was done contradicts the recorded probabilities, of all episodes; empty
        if it does not."""
        known = np.array([one.probability or np.nan for one in self._flat])
        if np.isnan(known).all():
            return ""
        # What is rarer than `LEAST` counts as that: together with it all would be more than 1.
        fitted = self._fitted / (1 + LEAST * len(self._actions))
        return contradiction(known, self._places) or foretold(known, fitted, self._numbers, FOLDS)

    @property
    def free(self) -> NDArray[np.bool_]:
        """In which decisions of the judged episodes there was more than one action to choose."""
        return np.array([len(one.available) != 1 for one in self._flat[self._mine]], dtype=bool)

    @property
    def determined(self) -> float:
        """How often a decision of the judged episodes follows from its state."""
        return determined(self._states[self._mine], self._places[self._mine])

    @property
    def returns(self) -> Vector:
        """The discounted returns of the judged episodes."""
        lengths = np.diff(self._starts)[self._judged.firsts[0] : self._judged.last]
        return discounted(self._rewards[self._mine], lengths, self._basis.discount)

    def estimated(self) -> Vector:
        """Return fitted probabilities of what was done in the judged episodes."""
        return self._fitted[self._mine]

    @cached_property
    def _fitted(self) -> Vector:
        return estimated(self._states, self._places, self._numbers, len(self._actions))

    @property
    def _numbers(self) -> Numbers:
        """The number of each decision's episode."""
        return np.repeat(np.arange(len(self._episodes)), np.diff(self._starts))

    def weighed(self, propensities: Vector) -> WeightedEpisodes:
        """Return the judged episodes, given with which probability each decision was taken."""
        judged = self._judged
        values, rows = np.concatenate(judged.values), np.arange(len(propensities))
        expected = (np.concatenate(judged.policy) * values).sum(axis=1)
        since = np.zeros((2, len(rows))) if judged.since is None else judged.since
        lengths = np.diff(self._starts)[judged.firsts[0] : judged.last]
        return WeightedEpisodes(
            ratios=np.concatenate(judged.target) / propensities,
            rewards=self._rewards[self._mine],
            expected=expected,
            predicted=values[rows, self._places[self._mine]],
            lengths=lengths,
            gained=np.array([discounted(one, lengths, self._basis.discount) for one in since]),
            discount=self._basis.discount,
        )


def episodes_of(transitions: Iterable[Transition]) -> list[Episode]:
    """Return the episodes that have ended, in the order in which they began.

    Args:
        transitions: in the order in which they were taken; those of several actors may alternate.
    """
    begun: list[list[Transition]] = []
    under_way: dict[str, list[Transition]] = {}
    for one in transitions:
        episode = under_way.get(one.actor)
        if episode is None:
            episode = under_way[one.actor] = []
            begun.append(episode)
        episode.append(one)
        if one.ends:
            del under_way[one.actor]
    return [episode for episode in begun if episode[-1].ends]
