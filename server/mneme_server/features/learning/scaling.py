"""Rewards in the unit that a session learns in, and what was learned in the one they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mneme_server.features.learning.learner import Choice, Learned, Question, Transition


def scaled(transitions: Sequence[Transition], scale: float) -> Sequence[Transition]:
    """Return transitions whose rewards are multiplied by `scale`."""
    if scale == 1:
        return transitions
    return [replace(one, reward=one.reward * scale) for one in transitions]


def aimed(questions: Sequence[Question], scale: float) -> Sequence[Question]:
    """Return questions whose returns to aim at are multiplied by `scale`."""
    if scale == 1:
        return questions
    return [
        one if one.target_return is None else replace(one, target_return=one.target_return * scale)
        for one in questions
    ]


def in_rewards(choices: list[Choice], scale: float) -> list[Choice]:
    """Return choices whose values are in the unit of the rewards that were told."""
    if scale == 1:
        return choices
    return [replace(one, values=one.values / scale) for one in choices]


def told(learned: Learned, scale: float) -> Learned:
    """Return what learning did, with its value in the unit of the rewards that were told."""
    if scale == 1 or learned.value is None:
        return learned
    return replace(learned, value=learned.value / scale)
