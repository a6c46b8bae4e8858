"""An explanation of a choice: what speaks for it, what would change it, and both in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.choosing import chosen
from mneme_server.features.learning.explaining.attribution import Attribution, attribute
from mneme_server.features.learning.explaining.counterfactuals import (
    Counterfactual,
    counterfactuals,
)
from mneme_server.features.learning.explaining.parts import Absent, Part, Path, name_of, parts_of
from mneme_server.features.learning.learner import Action, Choice, Learner, Question
from mneme_server.features.learning.spaces import Space

Vector = NDArray[np.float64]

_BACKGROUND = 8
_BUDGET = 128
"""States that an attribution asks about."""
_OBSERVED = 200
"""States whose values counterfactuals are made of: the newest."""
_TOLD = 4
"""Parts that the words speak of."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an action is chosen, or another one is not.

    Args:
        choice: what the policy chooses.
        action: what is explained.
        measure: what is attributed, in words.
        attribution: how much each part contributes to it.
        state: the parts of the state.
        counterfactuals: changes with which another action would be chosen, the smallest first.
        path: the decision in sentences.
    """

    choice: Choice
    action: Action
    measure: str
    attribution: Attribution
    state: Mapping[Path, Json]
    counterfactuals: Sequence[Counterfactual]
    path: Sequence[str]


def explain(
    learner: Learner,
    space: Space,
    question: Question,
    observed: Sequence[Json],
    *,
    action: Action | None = None,
    label: Callable[[Action], str] = str,
) -> Explanation:
    """Explain what a learner chooses, the same for the same state and experience.

    Args:
        learner: the learner. It is asked, and does not learn.
        space: of the states.
        question: the state, and the actions to choose from.
        observed: states that occurred, in their order; at least one. The background is drawn from
            them.
        action: the action to explain; None for the one that is chosen.
        label: what an action is called.

    Raises:
        InvalidArgument: the state has too many parts.
        Abandoned: nobody waits for the explanation any more.
    """
    seed = blake2b(canonical_json(question.state).encode(), digest_size=8).digest()
    chance = np.random.default_rng(int.from_bytes(seed))
    recent = observed[-_OBSERVED:]
    drawn = chance.choice(len(recent), size=min(_BACKGROUND, len(recent)), replace=False)
    ask = _Policy(learner)
    choice = ask([question])[0]
    explained = choice.action if action is None else action
    measure, score = _score(ask, question, choice, explained)
    attribution = attribute(
        space,
        question.state,
        [recent[place] for place in drawn.tolist()],
        score,
        budget=_BUDGET,
        chance=chance,
    )
    order = sorted(attribution.shares, key=lambda path: -abs(attribution.shares[path]))
    flips = counterfactuals(space, question, choice.action, ask, seen=recent, order=order)
    there = parts_of(space, question.state)
    found = Explanation(choice, explained, measure, attribution, there, flips, ())
    return replace(found, path=_path(found, question, label))


class _Policy:
    """The learner's best action: of equally good ones the first, so that it can be asked again.

    It answers only while somebody waits for the explanation."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    def __call__(self, questions: Sequence[Question]) -> list[Choice]:
        found = self._choose(questions, explore=False)
        return [
            replace(choice, action=question.allowed[int(choice.policy.argmax())])
            if len(choice.policy)
            else choice
            for question, choice in zip(questions, found, strict=True)
        ]

    def exploring(self, questions: Sequence[Question]) -> list[Choice]:
        """Return choices with the probabilities that it explores with."""
        return self._choose(questions, explore=True)

    def _choose(self, questions: Sequence[Question], *, explore: bool) -> list[Choice]:
        return chosen(self._learner, questions, explore=explore, chance=np.random.default_rng(0))


def _score(
    ask: _Policy, question: Question, choice: Choice, action: Action
) -> tuple[str, Callable[[Sequence[Json]], Vector]]:
    """Return what is attributed: in words, and as a function of states."""

    def questions(states: Sequence[Json]) -> list[Question]:
        return [replace(question, state=state) for state in states]

    if not isinstance(action, int):
        place = int(np.abs(np.array(action)).argmax())
        return (
            f"coordinate {place} of the action",
            lambda states: np.array([_coordinate(one, place) for one in ask(questions(states))]),
        )
    place = list(question.allowed).index(action)
    if len(choice.values) and len(question.allowed) > 1:
        return (
            "how much more it is expected to bring than the others on average",
            lambda states: np.array([_lead(one.values, place) for one in ask(questions(states))]),
        )
    return (
        "the probability of the action",
        lambda states: np.array(
            [float(one.policy[place]) for one in ask.exploring(questions(states))]
        ),
    )


def _lead(values: Vector, place: int) -> float:
    others = (float(values.sum()) - float(values[place])) / (len(values) - 1)
    return float(values[place]) - others


def _coordinate(choice: Choice, place: int) -> float:
    assert not isinstance(choice.action, int)
    return choice.action[place]


def _path(found: Explanation, question: Question, label: Callable[[Action], str]) -> list[str]:
    return [
        *_chosen(found, question, label),
        *_reasons(found),
        *(_flip(one, label) for one in found.counterfactuals[:2]),
    ]


def _chosen(found: Explanation, question: Question, label: Callable[[Action], str]) -> list[str]:
    choice = found.choice
    said = f"The policy chooses {label(choice.action)}"
    if len(choice.values) > 1 and isinstance(choice.action, int):
        place = list(question.allowed).index(choice.action)
        others = np.delete(choice.values, place)
        second = int(np.delete(np.arange(len(choice.values)), place)[others.argmax()])
        lead = float(choice.values[place]) - float(choice.values[second])
        said += (
            f", of which it expects {choice.values[place]:.3g}, {lead:.3g} more than of "
            f"{label(question.allowed[second])}"
        )
    said += f"; its confidence is {choice.confidence:.0%}."
    if found.action == choice.action:
        return [said]
    return [said, f"What follows is about {label(found.action)}, which it does not choose."]


def _reasons(found: Explanation) -> list[str]:
    attribution, measure, there = found.attribution, found.measure, found.state
    above = attribution.score - attribution.typical
    said = [
        f"{measure[:1].upper()}{measure[1:]} is {attribution.score:.3g}; in the states seen before "
        f"it is {attribution.typical:.3g} on average."
    ]
    ranked = sorted(attribution.shares.items(), key=lambda one: -abs(one[1]))
    largest = abs(ranked[0][1]) if ranked else 0.0
    for path, share in ranked[:_TOLD]:
        if abs(share) <= 0.01 * largest or largest < 1e-12:
            break
        part = there.get(path)
        value = f"{name_of(path)} = {_told(part)}" if path in there else f"No {name_of(path)}"
        said.append(f"{value} makes it {abs(share):.3g} {'more' if share > 0 else 'less'}.")
    if abs(above) < 1e-12 and largest < 1e-12:
        said.append("No part of the state makes a difference to it.")
    return said


def _flip(one: Counterfactual, label: Callable[[Action], str]) -> str:
    changes = " and ".join(_change(path, value) for path, value in one.changes.items())
    return f"Were {changes}, it would choose {label(one.choice.action)}."


def _change(path: Path, value: Part) -> str:
    return f"{name_of(path)} {_told(value)}"


def _told(value: Part) -> str:
    if isinstance(value, Absent):
        return "absent"
    return f"{value:.4g}" if isinstance(value, float) else canonical_json(value)
