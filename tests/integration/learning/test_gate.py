"""A baseline answers until the policy is known to be better, through the API."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mneme.v1 import learning_service_pb2 as pb
from mneme.v1 import learning_trust_pb2 as trust_pb
from support.api import Api, grpc, refused
from support.learning import Session, action, discrete, learner, plain, state
from support.server import LocalServer

LABELS = ("cache", "fetch")
FIXED = trust_pb.PolicyBaseline(action=action("cache"), lowest_reward=0)


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def ask(
    session: Session, baseline: trust_pb.PolicyBaseline = FIXED, **fields: Any
) -> pb.PredictResponse:
    request = pb.PredictRequest(
        session_id=session.id, state=state({"size": 1}), only_if_better=baseline, **fields
    )
    return session.api.learning.Predict(request)


def play(
    session: Session,
    count: int,
    good: str = "fetch",
    baseline: trust_pb.PolicyBaseline = FIXED,
    seed: int = 0,
) -> list[bool]:
    chance = np.random.default_rng(seed)
    trusted = []
    for _ in range(count):
        found = ask(session, baseline, explore=True)
        done = plain(found.prediction.action)
        reward = float(chance.random() < (0.95 if done == good else 0.05))
        session.reward(found.prediction.prediction_id, reward)
        trusted.append(found.gate.trusts_policy)
    return trusted


def test_a_baseline_answers_until_the_policy_is_known_to_gain_and_the_gate_says_why(
    api: Api,
) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS), seed=1)
    first = ask(session)
    assert plain(first.prediction.action) == "cache"
    assert not first.gate.trusts_policy
    assert first.gate.why.startswith("The action 'cache' answers: nothing is known yet")
    trusted = play(session, 400)
    assert not any(trusted[:20])
    assert trusted[-1]
    last = ask(session)
    assert plain(last.prediction.action) == "fetch"
    assert last.gate.trusts_policy
    assert 0 < last.gate.gain.low < last.gate.gain.value < last.gate.gain.high
    assert last.gate.why.startswith("The policy answers instead of the action 'cache'")


def test_a_gate_knows_what_it_knew_when_its_tenant_was_closed(
    server: LocalServer, api: Api
) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS), seed=1)
    play(session, 120)
    before = ask(session).gate
    server.close_tenant(api.tenant_id)
    assert ask(session).gate == before
    assert before.decisions > 50


@pytest.mark.parametrize("when", ["asked later", "asked at once", "closed"])
def test_the_rest_of_an_episode_that_was_under_way_is_no_evidence(
    server: LocalServer, api: Api, when: str
) -> None:
    session = Session(api, "q_learning", action_space=discrete(labels=LABELS))
    if when == "closed":
        session.tell({"size": 1}, "fetch", 1.0)  # Else the policy knows nothing of the beginning.
    if when != "asked later":
        ask(session)
    session.tell({"size": 1}, "fetch", 0.0, next_state={"size": 2}, probability=0.5)
    if when == "closed":
        server.close_tenant(api.tenant_id)
    assert ask(session).gate.decisions == 0
    session.tell({"size": 2}, "fetch", 1.0, probability=0.5)
    assert ask(session).gate.decisions == 0
    session.tell({"size": 1}, "fetch", 0.0, next_state={"size": 2}, probability=0.5)
    session.tell({"size": 2}, "fetch", 1.0, probability=0.5)
    assert ask(session).gate.decisions == 1


def test_one_that_answers_without_exploring_is_no_evidence_where_the_two_differ(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS))
    session.tell({"size": 1}, "fetch", 1.0)
    for _ in range(5):
        found = ask(session)
        assert found.prediction.probability == 1
        session.reward(found.prediction.prediction_id, 0.0)
    assert ask(session).gate.decisions == 0


def test_the_baseline_can_be_what_was_done_or_what_was_learned_before(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS))
    for n in range(60):
        session.tell({"size": 1}, "cache" if n % 10 else "fetch", 0.5, probability=0.5)
    done = ask(session, trust_pb.PolicyBaseline(behaviour=True))
    assert "behaviour fitted to 60 recorded decisions" in done.gate.why
    scores = {plain(one.action): one.probability for one in done.prediction.actions}
    assert scores["cache"] == pytest.approx(0.9, abs=0.1)
    version = ask(session, trust_pb.PolicyBaseline(first_steps=10))
    assert "Version 10 answers" in version.gate.why


def test_a_baseline_that_cannot_be_is_refused_with_what_is_lacking(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS))
    refusals = {
        "needs a baseline": trust_pb.PolicyBaseline(),
        "at least 50 are needed": trust_pb.PolicyBaseline(behaviour=True),
        "has learned 0 steps so far": trust_pb.PolicyBaseline(first_steps=10),
        "must be below highest_reward": trust_pb.PolicyBaseline(
            action=action("cache"), lowest_reward=1
        ),
        "none of its labels": trust_pb.PolicyBaseline(action=action("paint")),
    }
    for words, baseline in refusals.items():
        with refused() as failure:
            ask(session, baseline)
        assert words in failure.message
    with refused() as failure:
        ask(session, allowed_actions=[action("fetch")])
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "is not among the allowed actions" in failure.message


def test_what_came_of_a_choice_that_did_not_allow_the_baseline_is_no_evidence(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=LABELS))
    session.tell({"size": 1}, "fetch", 1.0)
    found = ask(session, explore=True)
    session.reward(found.prediction.prediction_id, 1.0)
    before = ask(session).gate
    without = session.predict({"size": 1}, [label for label in LABELS if label != "cache"])
    session.reward(without.prediction_id, 1.0)
    assert session.stored().learned == 3
    assert ask(session).gate == before
