"""An explanation of a choice: what speaks for it, what would change it, and both in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import (
    Action,
    ActionQuestion,
    Choice,
    DrawsValues,
    KnowsStates,
    Learner,
)
from mneme_server.features.learning.algorithms.choice import chosen
from mneme_server.features.learning.explanation.attribution import (
    Absent,
    Attribution,
    Part,
    Path,
    attribute,
    name_of,
    parts_of,
)
from mneme_server.features.learning.explanation.counterfactuals import (
    Counterfactual,
    counterfactuals,
)
from mneme_server.features.learning.sessions.live_session import LiveSession, Tenant
from mneme_server.features.learning.sessions.policy import StateInput
from mneme_server.features.learning.sessions.prediction import checked
from mneme_server.features.learning.sessions.session_copies import SessionCopies
from mneme_server.features.learning.spaces import Box, Space
from mneme_server.features.learning.store.steps import SqlLearningSteps

Vector = NDArray[np.float64]

_BACKGROUND = 8
_BUDGET = 128
"""States that an attribution asks about."""
_OBSERVED = 200
"""States whose values counterfactuals are made of: the newest."""
_DRAWN = 64
"""Draws of what values may be as well."""
_LEAST_STEPS = 10
"""Of fewer steps that were learned there are no figures."""
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
        unknown: why nothing can be explained, a sentence; empty if it can.
    """

    choice: Choice
    action: Action
    measure: str
    attribution: Attribution
    state: Mapping[Path, Json]
    counterfactuals: Sequence[Counterfactual]
    path: Sequence[str]
    unknown: str = ""


def explain(
    learner: Learner,
    space: Space,
    question: ActionQuestion,
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
    ask = _GreedyPolicy(learner)
    choice = ask([question])[0]
    explained = choice.action if action is None else action
    measure, score = _score(ask, question, choice, explained, learner)
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


class _GreedyPolicy:
    """The learner's best action: of equally good ones the first, so that it can be asked again.

    It answers only while somebody waits for the explanation."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    def __call__(self, questions: Sequence[ActionQuestion]) -> list[Choice]:
        found = self._choose(questions, explore=False)
        return [
            replace(choice, action=question.allowed[int(choice.policy.argmax())])
            if len(choice.policy)
            else choice
            for question, choice in zip(questions, found, strict=True)
        ]

    def exploring(self, questions: Sequence[ActionQuestion]) -> list[Choice]:
        """Return choices with the probabilities that it explores with."""
        return self._choose(questions, explore=True)

    def _choose(self, questions: Sequence[ActionQuestion], *, explore: bool) -> list[Choice]:
        return chosen(self._learner, questions, explore=explore, chance=np.random.default_rng(0))


def unexplained(
    learner: Learner,
    question: ActionQuestion,
    why: str,
    *,
    action: Action | None = None,
    label: Callable[[Action], str] = str,
) -> Explanation:
    """Return what can be told where nothing can be explained: what is chosen, without figures."""
    choice = _GreedyPolicy(learner)([question])[0]
    none = Attribution({}, 0.0, 0.0, exact=True)
    said = [f"The policy chooses {label(choice.action)}.", why]
    explained = choice.action if action is None else action
    return Explanation(choice, explained, "nothing", none, {}, (), said, why)


def _score(
    ask: _GreedyPolicy,
    question: ActionQuestion,
    choice: Choice,
    action: Action,
    learner: Learner,
) -> tuple[str, Callable[[Sequence[Json]], Vector]]:
    """Return what is attributed: in words, and as a function of states."""

    def questions(states: Sequence[Json]) -> list[ActionQuestion]:
        return [replace(question, state=state) for state in states]

    if not isinstance(action, int):
        place = int(np.abs(np.array(action)).argmax())
        return (
            f"coordinate {place} of the action",
            lambda states: np.array([_coordinate(one, place) for one in ask(questions(states))]),
        )
    place = list(question.allowed).index(action)
    if len(choice.values) and len(question.allowed) > 1:

        def leads(states: Sequence[Json]) -> Vector:
            asked = questions(states)
            if not isinstance(learner, DrawsValues):
                return np.array([_lead(one.values, place) for one in ask(asked)])
            deadline.check()
            drawn = learner.drawn_values(asked, _DRAWN)
            return np.array([_lead(rows.T, place) for rows in drawn])

        return "how much more it is expected to bring than the others on average", leads
    return (
        "the probability of the action",
        lambda states: np.array(
            [float(one.policy[place]) for one in ask.exploring(questions(states))]
        ),
    )


def _lead(values: Vector, place: int) -> Vector:
    """Return how much more one action is worth than the others on average; shape (actions, …)."""
    others = (values.sum(axis=0) - values[place]) / (len(values) - 1)
    return np.asarray(values[place] - others)


def _coordinate(choice: Choice, place: int) -> float:
    assert not isinstance(choice.action, int)
    return choice.action[place]


def _path(
    found: Explanation, question: ActionQuestion, label: Callable[[Action], str]
) -> list[str]:
    return [
        *_chosen(found, question, label),
        *_reasons(found),
        *(_flip(one, label) for one in found.counterfactuals[:2]),
    ]


def _chosen(
    found: Explanation, question: ActionQuestion, label: Callable[[Action], str]
) -> list[str]:
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
    unsure = []
    for path, share in ranked[:_TOLD]:
        if abs(share) <= 0.01 * largest or largest < 1e-12:
            break
        part = there.get(path)
        value = f"{name_of(path)} = {_told(part)}" if path in there else f"No {name_of(path)}"
        reach = attribution.reaches.get(path)
        if reach is not None and abs(share) <= reach:
            unsure.append(name_of(path))
            continue
        low, high = sorted((abs(share) - (reach or 0.0), abs(share) + (reach or 0.0)))
        interval = "" if reach is None else f" ({low:.2g} to {high:.2g})"
        more = "more" if share > 0 else "less"
        said.append(f"{value} makes it {abs(share):.3g}{interval} {more}.")
    if unsure:
        said.append(f"Whether {' or '.join(unsure)} makes a difference cannot be told yet.")
    if not attribution.reaches and largest >= 1e-12:
        said.append("How sure these figures are is not known.")
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


@dataclass(frozen=True, slots=True)
class ActionNames:
    """The callers' actions by the learner's numbers."""

    labels: Sequence[Json]
    numbers: Sequence[int]

    def of(self, action: Action) -> Json:
        """Return an action as callers know it."""
        if isinstance(action, int):
            return self.labels[self.numbers.index(action)]
        return list(action)


@dataclass(frozen=True, slots=True)
class NamedExplanation:
    """An explanation, and what its actions are called."""

    explanation: Explanation
    named: ActionNames


class Explain:
    """The use case: explain a choice. Nothing is written.

    Args:
        tenants: where tenants are.
        sessions: lends those that are asked.
    """

    def __init__(self, tenants: OpenTenants, sessions: SessionCopies) -> None:
        self._tenants = tenants
        self._sessions = sessions

    def explain(
        self, tenant_id: str, session_id: str, asked: StateInput, action: Json = None
    ) -> NamedExplanation:
        """Explain what a session chooses in a state.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            asked: the state, not checked yet.
            action: the action to explain; None: the one that is chosen.

        Raises:
            InvalidArgument: the state or an action is not in its space, or the action is not one
                of those to choose from.
            NotFound: there is no such session.
            FailedPrecondition: it has learned nothing yet.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
        ):
            asked = checked(live, asked, "")
            if action is not None:
                action = live.session.definition.actions.check(action, "action")
            observed = _observed(tenant, live)
            with deadline.holding(live.thinking):
                return _explained(live, asked, action, observed)


def _explained(
    live: LiveSession, asked: StateInput, action: Json, observed: Sequence[Json]
) -> NamedExplanation:
    if not live.policy.is_trained:
        raise FailedPrecondition(
            f"the learning session {live.id!r} has learned nothing yet, so that there is nothing to"
            " explain; tell it what came of some actions first",
            reason=Reason.MODEL_NOT_TRAINED,
        )
    question, labels = live.policy.question(asked)
    number: Action | None = None
    if action is not None and not isinstance(live.session.definition.actions, Box):
        known = {
            canonical_json(label): n for label, n in zip(labels, question.allowed, strict=True)
        }
        number = known.get(canonical_json(action))
        if number is None:
            raise InvalidArgument(
                f"action: {canonical_json(action)} is none of the actions to choose from: "
                + ", ".join(sorted(known)[:20]),
                field="action",
            )
    named = ActionNames(labels, question.allowed)
    why = _unknown(live, asked.state)
    if why:
        return NamedExplanation(
            unexplained(
                live.policy.learner,
                question,
                why,
                action=number,
                label=lambda one: canonical_json(named.of(one)),
            ),
            named,
        )
    explanation = explain(
        live.policy.learner,
        live.session.definition.states,
        question,
        observed or [asked.state],
        action=number,
        label=lambda one: canonical_json(named.of(one)),
    )
    return NamedExplanation(explanation, named)


def _unknown(live: LiveSession, state: Json) -> str:
    """Return why nothing can be explained; empty if it can."""
    learner, steps = live.policy.learner, live.policy.progress.learned
    if steps < _LEAST_STEPS and not live.policy.sources:
        return (
            f"The session has learned {steps} {'step' if steps == 1 else 'steps'}, which is too"
            " little to tell what any part of the state contributes."
        )
    if isinstance(learner, KnowsStates) and not learner.knows(state):
        return (
            "The table has never seen this state, or one that counts as the same, so that it knows"
            " nothing of what any action is worth here: what it chooses means nothing. States that"
            " differ in whole numbers, texts, or the first digit of other numbers are others."
        )
    return ""


def _observed(tenant: Tenant, live: LiveSession) -> list[Json]:
    last = live.policy.progress.learned
    with tenant.read() as unit:
        steps = unit.get(SqlLearningSteps).after(
            live.session.number, max(0, last - _OBSERVED), _OBSERVED
        )
    return [step.state for step in steps]
