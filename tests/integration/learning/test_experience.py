"""Telling a session of many trajectories, of what they were chosen from, and for how long it may
learn from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from mneme.v1 import auth_pb2, learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from mneme.v1 import skill_service_pb2 as skills_pb
from support.api import Api, grpc, refused
from support.learning import Session, action, discrete, learner, step
from support.server import LocalServer, local_server

ALL = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def told(name: str, *steps: learning_pb2.Experience, **fields: Any) -> pb.RecordTrajectoriesRequest:
    return pb.RecordTrajectoriesRequest(trajectory_id=name, steps=steps, **fields)


def stream(session: Session, *messages: pb.RecordTrajectoriesRequest) -> Any:
    messages[0].session_id = session.id
    *_, last = session.api.learning.RecordTrajectories(iter(messages))
    return last


def listed(session: Session, **fields: Any) -> pb.ListTrajectoriesResponse:
    request = pb.ListTrajectoriesRequest(session_id=session.id, **fields)
    return session.api.learning.ListTrajectories(request)


def test_a_stream_of_trajectories_is_learned_from_and_the_same_again_changes_nothing(
    api: Api,
) -> None:
    session = Session(api, "q_learning")
    messages = [
        told(f"t{n}", step({"n": n}, "a", 0.5), step({"n": n + 1}, "b", 1.0)) for n in range(250)
    ]
    done = stream(session, *messages)
    assert (done.acknowledged_count, done.known_count, done.steps_recorded) == (250, 0, 500)
    assert done.transitions == session.stored().learned == 500
    assert session.stored().episodes_completed == 250
    again = stream(session, *messages[:10], told("another", step({"n": 1}, "a", 0.0)))
    assert (again.acknowledged_count, again.known_count, again.steps_recorded) == (11, 10, 1)


def test_nothing_of_a_batch_is_recorded_if_one_of_its_trajectories_is_wrong(api: Api) -> None:
    session = Session(api, "q_learning", action_space=discrete(labels=["a", "b"]))
    with refused() as failure:
        stream(
            session,
            told("good", step({"n": 1}, "a", 1.0)),
            told("bad", step({"n": 1}, "a", 1.0), step({"n": 2}, "c", 1.0)),
        )
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "steps[1].action" in failure.fields
    assert failure.metadata["message_index"] == "1"
    assert failure.metadata["recorded"] == "0"
    assert not session.stored().transitions


def test_a_stream_without_a_session_or_with_two_is_refused(api: Api) -> None:
    one = told("t", step({"n": 1}, "a", 1.0))
    with refused() as failure:
        list(api.learning.RecordTrajectories(iter([one])))
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    session = Session(api, "q_learning")
    with refused() as failure:
        stream(session, one, told("u", step({"n": 1}, "a", 1.0), session_id="another"))
    assert failure.metadata["message_index"] == "1"


def test_what_is_noted_of_trajectories_is_listed_the_last_recorded_first(api: Api) -> None:
    session = Session(api, "q_learning")
    request = pb.RecordExperienceRequest(
        session_id=session.id, steps=[step({"n": 1}, "a", 0.5)] * 2, trajectory_id="first"
    )
    request.metadata.update({"task": "Renew the login", "success": True})
    api.learning.RecordExperience(request)
    stream(session, *[told(f"t{n}", step({"n": n}, "a", n)) for n in range(3)])
    page = listed(session, page_size=2)
    assert [one.id for one in page.trajectories] == ["t2", "t1"]
    rest = listed(session, page_token=page.next_page_token, page_size=2).trajectories
    assert [one.id for one in rest] == ["t0", "first"]
    assert MessageToDict(rest[1].metadata) == {"task": "Renew the login", "success": True}
    assert (rest[1].steps, rest[1].total_reward, rest[1].first_transition) == (2, 1.0, 1)
    session.tell({"n": 1}, "a", 1.0)
    assert len(listed(session).trajectories) == 4  # Feedback is no trajectory.


def test_an_action_must_be_among_those_it_is_said_to_be_chosen_from(api: Api) -> None:
    session = Session(api, "q_learning")
    session.tell({"n": 1}, "a", 1.0, allowed_actions=[action("a"), action("b")])
    assert [one.label for one in session.stored().known_actions] == ["a", "b"]
    with refused() as failure:
        session.tell({"n": 1}, "a", 1.0, allowed_actions=[action("b")])
    assert "must hold the action that was chosen" in failure.fields["allowed_actions"]
    made = session.predict({"n": 1})
    with refused() as failure:
        session.reward(made.prediction_id, 1.0, allowed_actions=[action("a")])
    assert "a prediction, which knows it" in failure.fields["allowed_actions"]


def test_each_step_of_training_learns_from_as_many_as_the_call_says(api: Api) -> None:
    session = Session(api, "q_learning")
    session.record(*[step({"n": n}, "a", 1.0, terminated=True) for n in range(20)])
    request = pb.TrainRequest(session_id=session.id, num_steps=10)
    *_, usual = api.learning.Train(request)
    request.batch_size = 5
    *_, few = api.learning.Train(request)
    assert (usual.updates, few.updates) == (320, 50)


def test_sessions_learn_only_for_so_long_in_a_day_but_still_predict(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", learning_seconds=1) as server:
        session = Session(learner(server.keys), "q_learning")
        session.record(*[step({"n": n}, "a", 1.0, terminated=True) for n in range(20)])
        with refused() as failure:
            request = pb.TrainRequest(session_id=session.id, num_steps=1_000_000, batch_size=100)
            list(session.api.learning.Train(request))
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
        )  # fmt: skip
        assert failure.retry_after_s is not None
        before = session.stored().transitions
        with refused() as failure:
            session.tell({"n": 1}, "a", 1.0)
        assert failure.reason == "QUOTA_EXCEEDED"
        assert session.stored().transitions == before
        assert session.predict({"n": 1}).trained


def test_a_session_that_ends_well_becomes_a_skill_and_stays_one(server: LocalServer) -> None:
    api = server.keys.tenant("skilled", *ALL)
    session = Session(api, "linucb", "which strategy")
    for _ in range(3):
        session.tell({"task_type": "auth", "complexity": 0.8}, "write_tests", 0.9)
    assert not session.end(min_performance=0.95).skill_id
    assert not session.end(skip_skill=True).skill_id
    made = session.end()
    assert made.skill_created
    skill = api.skill.GetSkill(skills_pb.GetSkillRequest(skill_id=made.skill_id)).skill
    assert skill.name == "choose_which_strategy"
    assert "Chooses among write_tests by complexity, task_type" in skill.description
    assert "Mean reward 0.9 over 3 episodes" in skill.description
    search = skills_pb.SearchSkillsRequest(task="choose a strategy by complexity")
    found = api.skill.SearchSkills(search).results
    assert [one.skill.id for one in found] == [made.skill_id]

    session = Session(api, "linucb", "which strategy")
    session.tell({"task_type": "auth", "complexity": 0.8}, "ask_first", 1.0)
    again = session.end()
    assert (again.skill_id, again.skill_created) == (made.skill_id, False)
    skill = api.skill.GetSkill(skills_pb.GetSkillRequest(skill_id=made.skill_id)).skill
    assert "among write_tests, ask_first" in skill.description
    assert skill.metadata["episodes"] == 4


def test_sessions_whose_skills_would_have_one_name_get_two(server: LocalServer) -> None:
    api = server.keys.tenant("skilled", *ALL)
    names = []
    for session_id in ("a-b", "a b"):
        session = Session(api, "linucb", session_id)
        for _ in range(3):
            session.tell({"n": 1}, "x", 1.0)
        skill_id = session.end().skill_id
        names.append(api.skill.GetSkill(skills_pb.GetSkillRequest(skill_id=skill_id)).skill.name)
    assert names == ["choose_a_b", "choose_a_b_2"]


def test_a_step_of_a_trajectory_led_to_the_next_one_of_its_actor(api: Api) -> None:
    session = Session(api, "q_learning")
    session.record(
        step({"n": 1}, "a", 0.0, actor_id="one"),
        step({"n": 5}, "a", 0.0, actor_id="other"),
        step({"n": 2}, "a", 1.0, actor_id="one"),
        step({"n": 6}, "a", 1.0, actor_id="other"),
    )
    assert session.stored().episodes_completed == 2


def test_what_comes_after_a_truncated_step_is_of_another_episode(api: Api) -> None:
    session = Session(api, "q_learning")
    with refused() as failure:
        session.record(step({"n": 9}, "a", 0.0, truncated=True), step({"n": 1}, "a", 1.0))
    assert "is required where an episode is truncated" in failure.fields["steps[0].next_state"]
