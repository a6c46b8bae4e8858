"""Learning sessions: started, asked, told, shown, ended, resumed and deleted."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from support.api import Api, grpc, refused
from support.learning import Session, action, discrete, learner, plain, step
from support.server import LocalServer, local_server

STRATEGIES = ["ask", "test", "guess"]


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def test_an_agent_asks_and_tells_and_gets_better_at_it(api: Api) -> None:
    session = Session(api, "linucb", action_space=discrete(labels=STRATEGIES))
    right = {"auth": "test", "ui": "ask"}
    for turn in range(60):
        task = {"task_type": "auth" if turn % 2 else "ui"}
        made = session.predict(task, explore=True)
        reward = float(plain(made.action) == right[task["task_type"]])
        told = session.reward(made.prediction_id, reward)
        assert (told.transition, told.episode_reward) == (turn + 1, reward)
    for kind, best in right.items():
        made = session.predict({"task_type": kind})
        assert (plain(made.action), made.trained, made.explored) == (best, True, False)
        assert made.confidence > 0.9
        assert plain(made.actions[0].action) == best
    assert session.metrics().moving_avg_reward > 0.7


def test_before_it_has_learned_it_draws_evenly_and_says_so(api: Api) -> None:
    session = Session(api, "q_learning")
    with refused() as failure:
        session.predict({"size": 1})
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION, "MODEL_NOT_TRAINED",
    )  # fmt: skip
    made = [session.predict({"size": 1}, ["a", {"strategy": "b"}]) for _ in range(40)]
    assert {str(plain(one.action)) for one in made} == {"a", "{'strategy': 'b'}"}
    assert all((one.trained, one.probability, one.confidence) == (False, 0.5, 0.5) for one in made)


def test_labels_are_collected_as_they_are_first_seen(api: Api) -> None:
    session = Session(api, "thompson")
    session.tell({"size": 1}, "a", 0.5)
    session.tell({"size": 1}, {"strategy": "oauth2"}, 1.0)
    assert [plain(one) for one in session.stored().known_actions] == ["a", {"strategy": "oauth2"}]
    made = session.predict({"size": 1}, ["a", "new"], explore=True)
    assert plain(made.action) in ("a", "new")
    assert len(session.stored().known_actions) == 2  # Asking is not telling.


SPACES: list[tuple[dict[str, Any], Any, Any, Any]] = [
    ({"discrete": {"n": 3}}, 2, {"discrete": {"n": 2}}, 1),
    ({"discrete": {"labels": ["x", "y"]}}, "y", {"discrete": {"labels": ["a", "b"]}}, "b"),
    ({"open_labels": {}}, "here", {"open_labels": {}}, {"go": "there"}),
    ({"multi_discrete": {"sizes": [2, 3]}}, [1, 2], {"multi_discrete": {"sizes": [2, 2]}}, [1, 0]),
    ({"box": {"low": [-1, "-Infinity"], "high": [1, "Infinity"]}}, [0.5, -3.5],
     {"discrete": {"n": 2}}, 0),
    ({"dict": {"spaces": [{"key": "at", "discrete": {"n": 4}}, {"key": "v", "box": {
        "low": [0], "high": [1]}}]}}, {"at": 3, "v": [0.25]}, {"discrete": {"n": 2}}, 1),
    ({"open_object": {}}, {"a": {"b": [1, "c"]}, "d": True}, {"open_labels": {}}, "go"),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", ["linucb", "q_learning"])
@pytest.mark.parametrize(("states", "of", "actions", "done"), SPACES)
def test_every_kind_of_space_is_asked_and_told_in_its_own_form(
    api: Api, algorithm: str, states: Any, of: Any, actions: Any, done: Any
) -> None:
    from google.protobuf.json_format import ParseDict

    session = Session(
        api,
        algorithm,
        state_space=ParseDict(states, learning_pb2.Space()),
        action_space=ParseDict(actions, learning_pb2.Space()),
    )
    session.tell(of, done, 1.0)
    assert plain(session.predict(of).action) == done
    kept = session.stored()
    assert kept.state_space == ParseDict(states, learning_pb2.Space()) or "labels" in str(states)


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"algorithm": "deep_thought"}, "algorithm", "ALGORITHM_NOT_SUPPORTED"),
        ({"config": {"learning_rat": 1}}, "config.learning_rat", "OUT_OF_RANGE"),
        ({"config": {"epsilon": 2}}, "config.epsilon", "OUT_OF_RANGE"),
        ({"action_space": {"box": {"low": [0], "high": [1]}}}, "action_space",
         "ALGORITHM_NOT_SUPPORTED"),
        ({"action_space": {"discrete": {"n": 1001}}}, "action_space", "OUT_OF_RANGE"),
        ({"action_space": {"open_object": {}}}, "action_space", "OUT_OF_RANGE"),
        ({"state_space": {"discrete": {}}}, "state_space.discrete", "OUT_OF_RANGE"),
        ({"state_space": {"discrete": {"labels": ["a", "a"]}}}, "state_space.discrete.labels",
         "OUT_OF_RANGE"),
        ({"state_space": {"box": {"low": [1], "high": [0]}}}, "state_space.box.high[0]",
         "OUT_OF_RANGE"),
        ({"state_space": {"dict": {"spaces": [{"key": "a"}]}}}, "state_space.dict.spaces[0]",
         "MISSING_REQUIRED_FIELD"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_work_is_refused(
    api: Api, fields: dict[str, Any], field: str, reason: str
) -> None:
    from google.protobuf.json_format import ParseDict

    request = ParseDict({"algorithm": "q_learning", **fields}, pb.StartLearningSessionRequest())
    with refused() as failure:
        api.learning.StartLearningSession(request)
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert list(failure.fields) == [field]


def test_the_same_definition_resumes_a_session_and_another_is_refused(api: Api) -> None:
    session = Session(api, "q_learning", config={"epsilon": 0.2})
    session.tell({"size": 1}, "a", 1.0)
    again = Session(api, "q_learning", config={"epsilon": 0.2, "bins": 10})
    assert again.resumed
    assert again.stored().transitions == 1
    for config, words in (({"epsilon": 0.3}, "the config"), ({}, "the config")):
        with refused() as failure:
            Session(api, "q_learning", config=config)
        assert failure.code == grpc.StatusCode.ALREADY_EXISTS
        assert words in failure.message
    with refused() as failure:
        Session(api, "sarsa", config={"epsilon": 0.2})
    assert "the algorithm differs" in failure.message


def test_an_ended_session_is_exported_refuses_calls_and_can_be_resumed(api: Api) -> None:
    session = Session(api, "linucb")
    for reward in (0.8, 0.9, 1.0):
        session.tell({"size": 1}, "a", reward)
    ended = session.end(min_performance=0.9)
    assert ended.session.status == learning_pb2.LEARNING_STATUS_ENDED
    assert ended.meets_skill_bar
    assert not session.end(min_performance=0.95, skip_export=True).meets_skill_bar
    with np.load(BytesIO(session.download()[1])) as model:  # Refuses what would run code.
        assert b'"algorithm":"linucb"' in model["json"].tobytes()
    for call in (lambda: session.predict({"size": 1}), lambda: session.tell({"size": 1}, "a", 1)):
        with refused() as failure:
            call()
        assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
        assert "has ended" in failure.message
    assert Session(api, "linucb").resumed
    assert session.predict({"size": 1}).trained


def test_a_session_that_still_learns_is_answered_with_all_that_it_was_told_when_it_is_deleted(
    api: Api,
) -> None:
    session = Session(api, "linucb")
    session.tell({"size": 1}, "a", 1.0)
    before = session.stored()
    request = pb.DeleteLearningSessionRequest(session_id=session.id)
    deleted = api.learning.DeleteLearningSession(request).session
    assert deleted == before
    assert deleted.transitions == 1


@pytest.mark.on_sqlite("elsewhere there is no file")
def test_a_deleted_session_is_gone_with_its_file_and_its_predictions(
    server: LocalServer, api: Api
) -> None:
    session = Session(api, "linucb")
    made = session.predict({"size": 1}, ["a"])
    session.tell({"size": 1}, "a", 1.0)
    path = Path(server.data_dir / session.end().model_path)
    before = session.stored()
    request = pb.DeleteLearningSessionRequest(session_id=session.id)
    assert api.learning.DeleteLearningSession(request).session == before
    assert not path.exists()
    with refused() as failure:
        session.stored()
    assert failure.reason == "SESSION_NOT_FOUND"
    another = Session(api, "linucb")
    assert not another.stored().transitions
    with refused() as failure:
        another.reward(made.prediction_id, 1.0)
    assert failure.code == grpc.StatusCode.NOT_FOUND


def test_sessions_are_listed_by_status_and_algorithm(api: Api) -> None:
    for number, algorithm in enumerate(["linucb", "sarsa", "linucb"]):
        Session(api, algorithm, f"session-{number}")
    Session(api, "sarsa", "session-3").end(skip_export=True)

    def listed(**filters: Any) -> list[str]:
        request = pb.ListLearningSessionsRequest(**filters)
        return [one.id for one in api.learning.ListLearningSessions(request).sessions]

    assert listed() == ["session-3", "session-2", "session-1", "session-0"]
    assert listed(algorithm="linucb") == ["session-2", "session-0"]
    assert listed(status=learning_pb2.LEARNING_STATUS_ENDED) == ["session-3"]


def test_there_are_only_so_many_active_sessions_and_only_some_stay_in_memory(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data", learning_sessions=4, learning_open_sessions=2) as server:
        api = learner(server.keys)
        config = {"rate_decay": 0}  # So that each reward moves a value further.
        sessions = [
            Session(api, "q_learning", f"session-{number}", config=config) for number in range(4)
        ]
        with refused() as failure:
            Session(api, "q_learning", "one-too-many")
        assert failure.reason == "QUOTA_EXCEEDED"
        for turn in range(3):  # Each parks another one.
            for number, session in enumerate(sessions):
                session.tell({"size": 1}, "a", number)
                assert session.stored().learned == turn + 1
        for number, session in enumerate(sessions):
            expected = number * (1 - 0.9**3)
            assert session.values({"size": 1})["a"] == pytest.approx(expected)
        sessions[0].end(skip_export=True)
        Session(api, "q_learning", "one-more")


def test_recorded_steps_may_take_only_so_many_bytes(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", learning_bytes=2**20) as server:
        session = Session(learner(server.keys), "q_learning")
        steps = [step({"text": "x" * 880}, "a", 0.0, terminated=True)] * 1000
        assert session.record(*steps).utilization == pytest.approx(0.98, abs=0.02)
        with refused() as failure:
            session.record(*steps)
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
        )  # fmt: skip
        assert session.stored().transitions == 1000


def test_the_actions_that_were_allowed_count_among_a_steps_bytes(api: Api) -> None:
    session = Session(api, "q_learning")
    labels = [action("x" * 100 + str(n)) for n in range(100)]
    fields = {"allowed_actions": labels, "next_allowed_actions": labels}
    told = session.record(step({"size": 1}, "x" * 100 + "0", 0.0, **fields))
    assert told.experience_bytes > 20_000


def test_the_algorithms_describe_themselves(api: Api) -> None:
    found = api.learning.ListAlgorithms(pb.ListAlgorithmsRequest()).algorithms
    named = {one.name: one for one in found}
    assert {"linucb", "thompson", "q_learning", "sarsa"} <= named.keys()
    keys = {key.name: key for key in named["q_learning"].keys}
    epsilon = keys["epsilon"]
    assert (epsilon.number, epsilon.low, epsilon.high, epsilon.whole) == (0.1, 0, 1, False)
    assert keys["bins"].whole
    asked = pb.ListAlgorithmsRequest(algorithm="sarsa")
    (only,) = api.learning.ListAlgorithms(asked).algorithms
    assert only.on_policy
    assert only.available
