"""Choosing for many questions at once, and drawing from policies over a number of actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mneme_server.common import deadline
from mneme_server.features.learning.certainty import Matrix
from mneme_server.features.learning.learner import Choice, Learner, Question

AT_ONCE = 64
"""Questions that a learner is asked at once: what it works out for each may take a megabyte."""


def chosen(
    learner: Learner, questions: Sequence[Question], *, explore: bool, chance: np.random.Generator
) -> list[Choice]:
    """Have a learner choose for all, part by part, as long as somebody waits for it.

    Raises:
        Abandoned: nobody does any more.
    """
    found: list[Choice] = []
    while some := questions[len(found) : len(found) + AT_ONCE]:
        deadline.check()
        found += learner.choose(some, explore=explore, chance=chance)
    return found


def by_count(questions: Sequence[Question]) -> Iterator[tuple[list[int], list[Question]]]:
    """Yield the questions with equally many allowed actions together, with their places."""
    groups: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        groups.setdefault(len(question.allowed), []).append(place)
    for places in groups.values():
        yield places, [questions[place] for place in places]


def greedy(values: Matrix) -> Matrix:
    """Return the policies that choose the largest value of each row, any of several."""
    largest: Matrix = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
    policy: Matrix = largest / largest.sum(axis=1, keepdims=True)
    return policy


def mixed(policy: Matrix, epsilon: float) -> Matrix:
    """Return policies that choose evenly with probability epsilon."""
    evenly: Matrix = (1 - epsilon) * policy + epsilon / policy.shape[1]
    return evenly


def drawn(
    questions: Sequence[Question],
    *,
    values: Matrix,
    policy: Matrix,
    best: Matrix,
    chance: np.random.Generator,
) -> list[Choice]:
    """Draw an action for each question.

    Args:
        questions: all with equally many allowed actions.
        values: what each is worth, shape (questions, actions); no columns if that is not known.
        policy: with which probability each is to be chosen.
        best: how probable it is that it is the best one.
        chance: one number is drawn from it for each question.
    """
    sums = policy.cumsum(axis=1)
    at = chance.random(len(questions)) * sums[:, -1]
    places = np.minimum((sums <= at[:, None]).sum(axis=1), policy.shape[1] - 1)
    scores = values if values.shape[1] else policy
    top = scores.max(axis=1)
    return [
        Choice(
            action=question.allowed[place],
            values=values[row],
            policy=policy[row],
            probability=float(policy[row, place]),
            confidence=float(best[row, place]),
            explored=bool(scores[row, place] < top[row]),
        )
        for row, (question, place) in enumerate(zip(questions, places.tolist(), strict=True))
    ]
