"""What can be told, once, and what cannot."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
from mneme.v1 import learning_pb2
from support.api import Api, grpc, refused
from support.learning import Session, discrete, learner, plain, step
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def test_a_prediction_is_learned_from_once(api: Api) -> None:
    session = Session(api, "q_learning")
    made = session.predict({"size": 1}, ["a", "b"])
    session.reward(made.prediction_id, 1.0)
    with refused() as failure:
        session.reward(made.prediction_id, 1.0)
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    assert "given feedback already" in failure.message
    assert session.stored().transitions == 1


def test_what_is_no_prediction_of_the_session_is_unknown(api: Api) -> None:
    session, another = Session(api, "q_learning"), Session(api, "q_learning", "another")
    made = session.predict({"size": 1}, ["a"]).prediction_id
    changed = made[:-2] + ("AA" if made[-2:] != "AA" else "BB")
    for prediction_id, told in ((changed, session), ("abc", session), (made, another)):
        with refused() as failure:
            fields = {"session_id": told.id}
            told.reward(prediction_id, 1.0, **fields)
        assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
        assert "unknown" in failure.message
    session.reward(made, 1.0)  # It is still good.


def test_the_same_feedback_again_changes_nothing_and_other_feedback_is_refused(api: Api) -> None:
    session = Session(api, "q_learning")
    first = session.tell({"size": 1}, "a", 1.0, feedback_id="mine")
    again = session.tell({"size": 1}, "a", 1.0, feedback_id="mine")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.transition == first.transition
    with refused() as failure:
        session.tell({"size": 1}, "a", 2.0, feedback_id="mine")
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    assert session.stored().transitions == 1


def test_feedback_again_is_answered_with_the_reward_that_its_episode_had_then(
    server: LocalServer, api: Api
) -> None:
    session = Session(api, "q_learning")
    steps: list[dict[str, Any]] = [
        {"of": {"at": 0}, "done": "go", "reward": 1.0, "next_state": {"at": 1}},
        {"of": {"at": 1}, "done": "go", "reward": 2.0},  # The episode ends.
        {"of": {"at": 0}, "done": "go", "reward": 8.0, "next_state": {"at": 1}},
    ]
    rewards = [
        session.tell(**one, feedback_id=f"f-{place}").episode_reward
        for place, one in enumerate(steps)
    ]
    assert rewards == [1.0, 3.0, 8.0]
    for _ in range(2):
        again = [session.tell(**one, feedback_id=f"f-{place}") for place, one in enumerate(steps)]
        assert [one.episode_reward for one in again] == rewards
        assert all(one.duplicate for one in again)
        server.close_tenant(api.tenant_id)  # Then it is opened again.


def test_the_same_trajectory_again_changes_nothing(api: Api) -> None:
    session = Session(api, "q_learning")
    steps = [step({"at": 0}, "go", 0.0), step({"at": 1}, "go", 1.0)]
    assert session.record(*steps, trajectory_id="mine").steps_recorded == 2
    assert session.record(*steps, trajectory_id="mine").steps_recorded == 0
    with refused() as failure:
        session.record(*steps[:1], trajectory_id="mine")
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    stored = session.stored()
    assert (stored.transitions, stored.episodes_completed, stored.total_reward) == (2, 1, 1.0)


def test_a_trajectory_told_again_is_answered_with_the_same_room_taken(api: Api) -> None:
    Session(api, "q_learning", "another").record(step({"at": 0}, "go", 1.0))
    session = Session(api, "q_learning")
    first = session.record(step({"at": 0}, "go", 1.0), trajectory_id="mine")
    again = session.record(step({"at": 0}, "go", 1.0), trajectory_id="mine")
    assert again.experience_bytes == first.experience_bytes
    assert again.utilization == first.utilization


def test_a_step_of_a_trajectory_leads_to_the_state_of_the_next_one(api: Api) -> None:
    config = {"learning_rate": 1.0, "discount_factor": 0.5}
    session = Session(api, "q_learning", config=config)
    steps = [step({"at": 0}, "go", 0.0), step({"at": 1}, "go", 8.0)]
    session.record(*steps)
    session.record(*steps)
    assert session.values({"at": 0}) == {"go": 4.0}


def test_an_end_and_a_break_are_not_the_same(api: Api) -> None:
    config = {"learning_rate": 1.0, "discount_factor": 0.5}
    session = Session(api, "q_learning", config=config)
    session.tell({"at": 1}, "go", 8.0)
    session.tell({"at": 0}, "go", 0.0, next_state={"at": 1}, truncated=True)
    assert session.values({"at": 0}) == {"go": 4.0}
    session.tell({"at": 0}, "go", 0.0, next_state={"at": 1}, terminated=True)
    assert session.values({"at": 0}) == {"go": 0.0}
    assert session.stored().episodes_completed == 3
    with refused() as failure:
        session.tell({"at": 0}, "go", 0.0, truncated=True)
    assert list(failure.fields) == ["next_state"]


def test_episodes_of_actors_are_kept_apart(api: Api) -> None:
    session = Session(api, "q_learning")
    for actor in ("ann", "bob"):
        told = session.tell({"at": 0}, "go", 1.0, next_state={"at": 1}, actor_id=actor)
        assert (told.episode_reward, told.episodes_completed) == (1.0, 0)
    told = session.tell({"at": 1}, "go", 2.0, actor_id="ann")
    assert (told.episode_reward, told.episodes_completed) == (3.0, 1)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"of": {"at": "here"}}, "state"),
    ({"of": 4}, "state"),
    ({"of": "here"}, "state"),
    ({"done": 2}, "action"),
    ({"done": "go"}, "action"),
    ({"reward": math.nan}, "reward"),
    ({"reward": math.inf}, "reward"),
    ({"next_state": 4}, "next_state"),
    ({"probability": 0.0}, "probability"),
    ({"next_allowed_actions": [learning_pb2.Action(number=9)]}, "next_allowed_actions[0]"),
]


@pytest.mark.parametrize(("wrong", "field"), BAD)
def test_what_is_not_in_the_spaces_or_no_number_is_refused(
    api: Api, wrong: dict[str, Any], field: str
) -> None:
    session = Session(api, "q_learning", state_space=discrete(4), action_space=discrete(2))
    with refused() as failure:
        session.tell(**({"of": 1, "done": 0, "reward": 1.0} | wrong))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == [field]
    with refused() as failure:
        session.record(step(1, 0, 1.0), step(**({"of": 1, "done": 0, "reward": 1.0} | wrong)))
    assert list(failure.fields) == [f"steps[1].{field}"]
    assert not session.stored().transitions


def test_a_state_of_another_shape_is_refused(api: Api) -> None:
    box = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[0, 0], high=[1, 1]))
    session = Session(api, "linucb", state_space=box)
    session.tell([0.5, 0.5], "a", 1.0)
    for wrong in ([0.5], [0.5, 0.5, 0.5], {"x": 1}):
        with refused() as failure:
            session.predict(wrong)
        assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
        assert list(failure.fields) == ["state"]


def test_sarsa_refuses_a_step_of_which_nobody_knows_how_it_was_chosen(api: Api) -> None:
    session = Session(api, "sarsa")
    with refused() as failure:
        session.tell({"at": 0}, "go", 1.0)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "learns only from its own behaviour" in failure.message
    session.tell({"at": 0}, "go", 1.0, probability=0.5)
    made = session.predict({"at": 0}, explore=True)
    session.reward(made.prediction_id, 1.0)
    assert session.stored().learned == 2


def test_with_a_prediction_nothing_is_told_twice(api: Api) -> None:
    session = Session(api, "q_learning")
    made = session.predict({"at": 0}, ["go"])
    with refused() as failure:
        session.reward(made.prediction_id, 1.0, actor_id="ann")
    assert list(failure.fields) == ["actor_id"]


@pytest.mark.parametrize("algorithm", ["linucb", "thompson", "q_learning"])
def test_rewards_of_any_size_are_taken_and_leave_the_session_usable(
    api: Api, algorithm: str
) -> None:
    session = Session(api, algorithm)
    for reward in (1e308, 1e308, -1e308, 1e-308, 1e200, -1e200):
        session.tell({"at": 0}, "go", reward)
        session.tell({"at": 0}, "stay", 1.0)
    made = session.predict({"at": 0}, explore=True)
    assert plain(made.action) in ("go", "stay")
    assert 0 <= made.confidence <= 1
    assert session.metrics().episodes_completed == 12


def test_two_writers_are_learned_from_one_after_the_other(api: Api) -> None:
    session = Session(api, "q_learning", config={"learning_rate": 0.5})

    def write(actor: str) -> None:
        for number in range(40):
            session.tell({"at": 0}, "go", float(number), actor_id=actor)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("ann", "bob")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stored = session.stored()
    assert (stored.transitions, stored.learned, stored.episodes_completed) == (80, 80, 80)
    assert stored.total_reward == 2 * sum(range(40))


def test_a_session_that_learns_in_the_background_catches_up(api: Api) -> None:
    mode = learning_pb2.LEARNING_MODE_BACKGROUND
    session = Session(api, "q_learning", learning=mode, config={"learning_rate": 1.0})
    steps = [step({"at": n}, "go", float(n)) for n in range(300)]
    assert session.record(*steps).updates == 0
    while session.stored().learned < 300:
        pass
    assert session.values({"at": 7}) == {"go": 7.0}


def test_a_probability_of_more_than_1_is_refused_unless_it_is_a_density(api: Api) -> None:
    session = Session(api, "q_learning")
    with refused() as failure:
        session.tell({"at": 0}, "go", 1.0, probability=1.5)
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "OUT_OF_RANGE")
    assert list(failure.fields) == ["probability"]
    assert "must be above 0 and at most 1, not 1.5" in failure.message
    with refused() as failure:
        session.record(step({"at": 0}, "go", 1.0, terminated=True, probability=2.0))
    assert list(failure.fields) == ["steps[0].probability"]
    assert session.stored().transitions == 0


def test_a_state_that_is_a_text_where_an_object_is_asked_for_is_refused_by_its_field(
    api: Api,
) -> None:
    session = Session(api, "linucb")
    session.tell({"at": 0}, "go", 1.0)
    with refused() as failure:
        session.predict("auth")
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == ["state"]
    assert "must be an object" in failure.message
