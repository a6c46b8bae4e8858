"""What a session has learned outlives closing, stopping and SIGKILL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from mneme_server.features.learning.sessions import prediction_ids
from support.api import Api, grpc, refused
from support.contexts import eventually
from support.learning import Session, discrete, learner
from support.operations import finished
from support.server import LocalServer, ServerProcess, local_server

pytestmark = pytest.mark.slow

ALGORITHMS = ["linucb", "thompson", "q_learning", "sarsa"]
STATES = [{"task_type": "auth", "size": 0.2}, {"task_type": "ui", "size": 0.8}]


def teach(session: Session, turns: int, start: int = 0) -> None:
    """Ask and tell, some episodes of two steps among the rest."""
    for turn in range(start, start + turns):
        made = session.predict(STATES[turn % 2], explore=True)
        following = {"next_state": STATES[(turn + 1) % 2]} if turn % 3 else {}
        session.reward(made.prediction_id, float(turn % 5), **following)


def known(session: Session) -> list[Any]:
    """All that tells what it has learned."""
    values = [session.values(state) for state in STATES]
    stored = session.stored()
    stored.ClearField("updated_at")
    metrics = session.metrics()
    metrics.ClearField("training_time")
    for point in metrics.history:
        point.ClearField("loss")
        point.ClearField("value_mean")
    return [values, stored, metrics]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_session_knows_what_it_knew_when_its_tenant_was_closed(
    server: LocalServer, algorithm: str
) -> None:
    api = learner(server.keys)
    session = Session(api, algorithm, action_space=discrete(3))
    teach(session, 30)
    before = known(session)
    server.close_tenant(api.tenant_id)
    assert known(session) == before
    teach(session, 10, start=30)
    assert session.stored().learned == 40


def test_what_was_acknowledged_is_learned_again_after_a_kill(tmp_path: Path) -> None:
    first = ServerProcess(tmp_path / "data")
    api = learner(first.keys)
    sessions = [
        Session(api, algorithm, algorithm, action_space=discrete(3)) for algorithm in ALGORITHMS
    ]
    for session in sessions:
        teach(session, 40)
    before = [known(session) for session in sessions]
    waiting = [session.predict(STATES[0]).prediction_id for session in sessions]
    first.kill()
    second = ServerProcess(tmp_path / "data")
    try:
        again = second.keys.api(api.secret, api.tenant_id)
        for session, knew, prediction_id in zip(sessions, before, waiting, strict=True):
            session.api = again
            assert known(session) == knew
            session.reward(prediction_id, 1.0)  # It was made before the kill.
            assert session.stored().learned == 41
    finally:
        second.stop()


def test_the_same_calls_with_the_same_seed_learn_the_same(server: LocalServer) -> None:
    api = learner(server.keys)
    learned = []
    for name in ("one", "other"):
        session = Session(api, "thompson", name, action_space=discrete(3), seed=7)
        teach(session, 30)
        learned.append([session.values(state) for state in STATES])
    assert learned[0] == learned[1]
    another = Session(api, "thompson", "another", action_space=discrete(3), seed=8)
    teach(another, 30)
    assert [another.values(state) for state in STATES] != learned[0]


def changed(server: LocalServer, api: Api, statement: str) -> None:
    """Change a closed tenant's database behind the server's back."""
    with server.database(api.tenant_id) as database:
        assert database.execute(statement).rowcount


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_damaged_checkpoint_is_named_and_the_session_can_be_deleted(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api = learner(server.keys)
        session = Session(api, "q_learning", action_space=discrete(3))
        teach(session, 5)
        changed(server, api, "UPDATE learning_checkpoints SET data = x'00'")
        for call in (
            lambda: session.predict(STATES[0]),
            lambda: teach(session, 1),
            session.end,
            lambda: Session(api, "q_learning", action_space=discrete(3)),
        ):
            with refused() as failure:
                call()
            assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
            assert failure.metadata["id"] == "session"
        assert session.stored().transitions == 5
        api.learning.DeleteLearningSession(pb.DeleteLearningSessionRequest(session_id="session"))
        teach(Session(api, "q_learning", action_space=discrete(3)), 1)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("algorithm = 'q_yearning'", "no algorithm q_yearning"),
        ("version = 0", "this server's q_learning is of version 1"),
    ],
)
def test_a_session_of_an_algorithm_that_is_no_more_says_so(
    tmp_path: Path, change: str, says: str
) -> None:
    with local_server(tmp_path / "data") as server:
        api = learner(server.keys)
        session = Session(api, "q_learning")
        session.tell({"size": 1}, "a", 1.0)
        changed(server, api, f"UPDATE learning_sessions SET {change}")
        with refused() as failure:
            session.predict({"size": 1})
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION, "ALGORITHM_NOT_SUPPORTED",
        )  # fmt: skip
        assert says in failure.message


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@pytest.mark.parametrize(
    "change",
    [
        "learning_sessions SET version = 0 WHERE id = 'broken'",
        "learning_checkpoints SET data = x'00'",
    ],
)
def test_in_the_background_no_session_waits_for_one_that_cannot_learn(
    tmp_path: Path, change: str
) -> None:
    with local_server(tmp_path / "data") as server:
        api = learner(server.keys)
        mode = learning_pb2.LEARNING_MODE_BACKGROUND
        broken, sound = (
            Session(api, "q_learning", name, action_space=discrete(3), learning=mode)
            for name in ("broken", "sound")
        )
        broken.tell(STATES[0], 0, 1.0)
        eventually(broken.stored, lambda stored: stored.learned == 1)
        changed(server, api, "UPDATE learning_sessions SET learned = 0")
        changed(server, api, f"UPDATE {change}")
        sound.tell(STATES[0], 0, 1.0)
        eventually(sound.stored, lambda stored: stored.learned == 1)
        assert broken.stored().learned == 0


def test_a_prediction_is_good_for_thirty_days(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(learner(server.keys), "q_learning")
    made = session.predict({"size": 1}, ["a"]).prediction_id
    monkeypatch.setattr(prediction_ids, "LIFETIME_US", 0)
    monkeypatch.setattr("mneme_server.features.learning.sessions.step_checks.LIFETIME_US", 0)
    with refused() as failure:
        session.reward(made, 1.0)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert "older than 30 days" in failure.message
    monkeypatch.undo()
    session.reward(made, 1.0)


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_tenant_knows_what_it_knew_when_it_was_backed_up(server: LocalServer) -> None:
    from mneme.v1 import admin_service_pb2 as admin_pb

    api = learner(server.keys)
    session = Session(api, "q_learning", action_space=discrete(3))
    teach(session, 10)
    before = known(session)
    made = finished(
        server.keys.admin,
        admin_pb.BackupRequest(tenant_id=api.tenant_id),
    )
    teach(session, 10, start=10)
    finished(
        server.keys.admin,
        admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup=made.path.rpartition("/")[2]),
    )
    assert known(session) == before
