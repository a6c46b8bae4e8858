"""Whether what was learned can be trusted, through the API: evaluations, explanations, shaping."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from mneme.v1 import learning_service_pb2 as pb
from mneme.v1 import learning_trust_pb2 as trust_pb
from support.api import Api, grpc, refused
from support.learning import Session, action, discrete, learner, plain, state, step
from support.server import LocalServer

STRATEGIES = ("ask", "test", "do")


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def right(task: Mapping[str, Any]) -> str:
    if task["task_type"] == "ui":
        return "do"
    return "test" if task["complexity"] > 0.5 else "ask"


def teach(session: Session, count: int, probability: float | None = 1 / 3) -> None:
    """Let somebody else try strategies evenly."""
    chance = np.random.default_rng(0)
    steps = []
    for _ in range(count):
        task = {
            "task_type": str(chance.choice(["auth", "ui"])),
            "complexity": round(float(chance.random()), 1),
            "team": str(chance.choice(["a", "b"])),
        }
        done = str(chance.choice(STRATEGIES))
        reward = float(chance.random() < (0.9 if done == right(task) else 0.2))
        known = {} if probability is None else {"probability": probability}
        steps.append(step(task, done, reward, **known))
    for first in range(0, count, 500):
        session.record(*steps[first : first + 500])


def evaluated(session: Session) -> trust_pb.OffPolicyEvaluation:
    request = pb.GetLearningMetricsRequest(session_id=session.id, evaluate=True)
    return session.api.learning.GetLearningMetrics(request).evaluation


def explained(session: Session, of: Any, **fields: Any) -> trust_pb.Explanation:
    request = pb.ExplainRequest(session_id=session.id, state=state(of), **fields)
    return session.api.learning.Explain(request).explanation


def shaped(session: Session, of: Any, **fields: Any) -> pb.ShapeRewardResponse:
    request = pb.ShapeRewardRequest(session_id=session.id, state=state(of), **fields)
    return session.api.learning.ShapeReward(request)


def test_an_evaluation_tells_what_the_policy_would_have_earned_and_how_sure_that_is(
    api: Api,
) -> None:
    session = Session(api, "linucb")
    teach(session, 1_000)
    found = evaluated(session)
    assert found.refused == ""
    assert found.propensities == trust_pb.PROPENSITIES_RECORDED
    assert found.effective_sample_size >= 50
    assert found.behaviour.value == pytest.approx((0.9 + 0.2 + 0.2) / 3, abs=0.1)
    for estimate in (found.weighted_importance_sampling, found.doubly_robust):
        assert estimate.low < estimate.value < estimate.high
        assert estimate.value > 0.65
    assert found.gain.low > 0
    assert "and surely more" in found.summary
    assert (found.steps_read, found.truncated) == (1_000, False)


def test_unknown_probabilities_are_estimated_and_that_is_said(api: Api) -> None:
    session = Session(api, "thompson")
    teach(session, 1_000, probability=None)
    found = evaluated(session)
    assert found.propensities == trust_pb.PROPENSITIES_ESTIMATED
    assert found.gain.low > 0
    assert "are estimated" in found.summary


def test_too_little_is_refused_in_words_and_nothing_is_evaluated_unless_asked_for(api: Api) -> None:
    session = Session(api, "linucb")
    assert "came after what the policy had learned from" in evaluated(session).refused
    teach(session, 30)
    found = evaluated(session)
    assert found.summary.startswith("What the policy would have earned is not known. Only 15 of")
    assert not found.HasField("gain")
    unasked = api.learning.GetLearningMetrics(pb.GetLearningMetricsRequest(session_id=session.id))
    assert not unasked.HasField("evaluation")


def test_a_choice_is_explained_by_what_speaks_for_it_and_what_would_flip_it(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=STRATEGIES))
    teach(session, 600)
    task = {"task_type": "auth", "complexity": 0.9, "team": "a"}
    found = explained(session, task)
    assert plain(found.action) == plain(found.chosen_action) == "test"
    shares = {one.feature: one.importance for one in found.feature_importance}
    assert shares.keys() == task.keys()
    assert sum(shares.values()) == pytest.approx(found.score - found.typical)
    assert abs(shares["team"]) < max(shares["complexity"], shares["task_type"])
    assert {one.feature: json.loads(one.value) for one in found.feature_importance} == task
    assert found.counterfactuals
    for one in found.counterfactuals:
        other = task | {change.feature: json.loads(change.value) for change in one.changes}
        assert session.predict(other).action == one.predicted_action != found.action
    assert found.decision_path[0].startswith('The policy chooses "test", of which it expects')


def test_an_action_that_is_not_chosen_is_explained_if_it_could_be(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=STRATEGIES))
    teach(session, 300)
    task = {"task_type": "auth", "complexity": 0.9, "team": "a"}
    found = explained(session, task, action=action("do"))
    assert plain(found.action) == "do" != plain(found.chosen_action)
    with refused() as failure:
        explained(session, task, action=action("do"), allowed_actions=[action("ask")])
    assert failure.message == 'action: "do" is none of the actions to choose from: "ask"'


def test_what_an_explanation_takes_does_not_grow_with_how_different_states_were(
    api: Api,
) -> None:
    session = Session(api, "linucb")
    states = [{f"{n}-{part}": 1.0 for part in range(100)} for n in range(12)]
    session.record(*(step(one, "ask", 1.0) for one in states), step(states[0], "do", 0.0))
    tracemalloc.start()
    try:
        found = explained(session, states[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.feature_importance) >= 200
    assert sum(one.importance for one in found.feature_importance) == pytest.approx(
        found.score - found.typical
    )
    assert peak < 64 * 2**20


def test_before_anything_was_learned_there_is_nothing_to_explain(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=STRATEGIES))
    with refused() as failure:
        explained(session, {"task_type": "ui"})
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "has learned nothing yet" in failure.message


def test_a_shaped_reward_is_the_tasks_own_and_a_bonus_whose_parts_are_told(api: Api) -> None:
    session = Session(api, "q_learning")
    first = shaped(session, {"room": 1}, extrinsic_reward=1)
    assert first.shaped_reward == first.extrinsic_reward == 1
    novelty = trust_pb.SHAPING_TYPE_NOVELTY
    again = shaped(session, {"room": 1}, shaping_type=novelty, shaping_weight=0.5)
    assert again.components.novelty_bonus == pytest.approx(2**-0.5)
    assert again.intrinsic_reward == pytest.approx(0.5 * 2**-0.5)
    assert not again.keeps_best_policy
    kept = shaped(session, {"room": 2}, shaping_type=novelty, potential_based=True)
    assert kept.keeps_best_policy
    assert "cancels out" in kept.why
    for place in range(100):
        known = shaped(session, {"room": place % 2}, action=action("on"))
    assert known.components.curiosity_bonus < 0.1
    new = shaped(session, {"cellar": True, "dark": True}, action=action("down"))
    assert new.components.curiosity_bonus > 0.3


def test_progress_is_measured_by_what_was_learned(api: Api) -> None:
    session = Session(api, "q_learning", config={"learning_rate": 1.0, "discount_factor": 0.5})
    session.tell({"room": 2}, "on", 1.0)
    progress = trust_pb.SHAPING_TYPE_PROGRESS
    found = shaped(
        session, {"room": 1}, next_state=state({"room": 2}), shaping_type=progress, actor_id="b"
    )
    assert found.components.progress_bonus == pytest.approx(0.5)
    ended = shaped(
        session, {"room": 2}, next_state=state({"room": 3}), shaping_type=progress, terminated=True
    )
    assert ended.components.progress_bonus == pytest.approx(-1.0)


def test_what_was_seen_outlives_a_session_that_is_ended_and_resumed(api: Api) -> None:
    session = Session(api, "q_learning")
    novelty = trust_pb.SHAPING_TYPE_NOVELTY
    for _ in range(3):
        shaped(session, {"room": 1}, shaping_type=novelty)
    session.end()
    with refused() as failure:
        shaped(session, {"room": 1})
    assert "has ended; start it again" in failure.message
    session = Session(api, "q_learning")
    found = shaped(session, {"room": 1}, shaping_type=novelty)
    assert found.components.novelty_bonus == pytest.approx(0.5)


def test_a_bonus_that_cannot_be_is_refused(api: Api) -> None:
    session = Session(api, "q_learning")
    with refused() as failure:
        shaped(session, {"room": 1}, potential_based=True)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "ask for novelty or progress" in failure.message


def test_a_state_that_a_table_never_saw_and_too_few_steps_are_explained_as_such(api: Api) -> None:
    table = Session(api, "q_learning")
    teach(table, 500)
    known = {"task_type": "ui", "complexity": 0.5, "team": "a"}
    new = {"task_type": "db", "complexity": 0.5, "team": "a"}
    assert explained(table, known).unknown == ""
    found = explained(table, new)
    assert found.unknown.startswith("The table has never seen this state")
    assert not found.feature_importance
    assert not found.counterfactuals
    assert found.decision_path[-1] == found.unknown
    few = Session(api, "linucb", "few")
    teach(few, 3)
    found = explained(few, known)
    assert found.unknown.startswith("The session has learned 3 steps, which is too little")
    assert not found.feature_importance


def test_importances_have_intervals(api: Api) -> None:
    session = Session(api, "linucb")
    teach(session, 300)
    found = explained(session, {"task_type": "ui", "complexity": 0.9, "team": "a"})
    for one in found.feature_importance:
        assert one.low <= one.importance <= one.high
    (team,) = [one for one in found.feature_importance if one.feature == "team"]
    assert team.low < 0 < team.high
    assert not any(one.startswith("team") for one in found.decision_path)


def test_metrics_note_that_the_world_has_changed_and_that_rewards_are_too_small(api: Api) -> None:
    session, table = Session(api, "thompson"), Session(api, "q_learning", "table")
    for n in range(120):
        session.tell({"kind": "x"}, "go", 1.0 if n < 80 else 0.0)
        table.tell({"kind": "x"}, "go", -0.004)
    (note, *_) = session.metrics().notes
    assert "the world seems to have changed" in note
    assert any(
        "q_learning learns best from rewards of about 1" in one for one in table.metrics().notes
    )
