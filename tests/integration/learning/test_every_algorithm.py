"""What holds for sessions of every algorithm: nothing is lost, nothing is left to chance, and what
cannot be is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from mneme_server.features.learning.catalogue import ALGORITHMS, algorithm_named
from mneme_server.features.learning.sessions.live_session import SAVED_EVERY_S
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from support.api import Api, grpc, refused
from support.folders import wait_until
from support.learning import Session, discrete, learner
from support.learning_sessions import (
    BOX,
    NETWORKS,
    RECORDED_ONLY,
    STATES,
    TABLES_AND_BANDITS,
    drawn,
    halfway,
    known,
    practise,
    score,
    small,
    told,
    train,
)
from support.server import LocalServer, ServerProcess, local_server

pytestmark = pytest.mark.slow

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="the extra `rl` is not installed"
)
EVERY = [*TABLES_AND_BANDITS, *(pytest.param(name, marks=needs_torch) for name in NETWORKS)]
ON_POLICY = [
    pytest.param(one.name, marks=needs_torch if one.needs_torch else ())
    for one in ALGORITHMS
    if one.on_policy
]
GROUPS = [
    TABLES_AND_BANDITS,
    pytest.param(NETWORKS[:4], marks=needs_torch),  # Each has a process with torch in it.
    pytest.param(NETWORKS[4:], marks=needs_torch),
]
BEFORE, SINCE, AFTER = 150, 25, 40
"""Steps that are told before a checkpoint, after it until the kill, and after the restart."""
TRAINED = 100
"""Steps of training before the checkpoint."""


@pytest.fixture(scope="module", autouse=True)
def _patience() -> Iterator[None]:
    """The first step that a network learns from waits until a process has loaded torch."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("support.api._TIMEOUT_S", 300.0)
        yield


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


@dataclass(frozen=True)
class Survived:
    """A tenant of a server that came up after one was killed, and a prediction of each of its
    sessions that was made before. Nothing was drawn between what was saved and the kill."""

    api: Api
    waiting: dict[str, str]


@pytest.fixture(scope="module", params=GROUPS, ids=lambda names: names[0])
def survived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Survived]:
    data_dir = tmp_path_factory.mktemp("killed") / "data"
    first = ServerProcess(data_dir)
    try:
        api = learner(first.keys)
        sessions = {name: small(api, name, name) for name in request.param}
        waiting = {name: _begin(session, name) for name, session in sessions.items()}
        for name, session in sessions.items():
            session.record(*told(name, SINCE, start=BEFORE))
    finally:
        first.kill()
    second = ServerProcess(data_dir)
    try:
        yield Survived(second.keys.api(api.secret, api.tenant_id), waiting)
    finally:
        second.stop()


def _begin(session: Session, name: str) -> str:
    """Tell it what others did, train it, have it draw, tell it more, save it; return the id of a
    prediction."""
    session.record(*told(name, BEFORE - 10))
    if name in NETWORKS:
        train(session, TRAINED)
    drawn(session, 7)
    waiting: str = session.predict([0.5], explore=True).prediction_id
    session.record(*told(name, 10, start=BEFORE - 10))
    session.end(skip_export=True, skip_skill=True)
    assert small(session.api, name, session.id).resumed
    return waiting


def test_after_a_kill_sessions_know_what_they_knew_and_go_on_as_if_there_had_been_none(
    survived: Survived,
) -> None:
    for name, waiting in survived.waiting.items():
        session = small(survived.api, name, name)
        assert session.resumed
        never_killed = small(survived.api, name, f"{name}, never killed")
        _begin(never_killed, name)
        never_killed.record(*told(name, SINCE, start=BEFORE))
        assert known(session) == known(never_killed), name
        assert score(session) == score(never_killed) > halfway(name), name

        for one in (session, never_killed):
            one.record(*told(name, AFTER, start=BEFORE + SINCE))
            if name in RECORDED_ONLY:
                train(one, 10)
        assert known(session) == known(never_killed), name
        assert drawn(session, 7) == drawn(never_killed, 7), name

        session.reward(waiting, 1.0)  # It was made before the kill.
        with refused() as failure:
            session.reward(waiting, 1.0)
        assert failure.code == grpc.StatusCode.ALREADY_EXISTS
        for one in (session, never_killed):
            _delete(one)


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_what_an_open_session_has_learned_is_saved_every_few_seconds(
    server: LocalServer, api: Api, names: list[str]
) -> None:
    assert SAVED_EVERY_S <= 10
    sessions = [small(api, name, name) for name in names]
    for session in sessions:
        session.record(*told(session.id, 20))

    def saved(session: Session) -> bool:
        with (
            server.application.runtime.tenants.open(api.tenant_id) as tenant,
            tenant.read() as unit,
        ):
            stored = unit.get(SqlLearningSessions).get(session.id)
            assert stored is not None
            checkpoint = unit.get(SqlLearningSessions).checkpoint(stored.number)
        return checkpoint is not None and checkpoint.progress.learned == 20

    for session in sessions:
        wait_until(partial(saved, session), f"what {session.id} has learned is saved")
        _delete(session)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_calls_with_the_same_seed_learn_the_same_also_if_one_is_parked_meanwhile(
    server: LocalServer, api: Api, name: str
) -> None:
    learned = []
    for seed, session_id in ((7, "one"), (7, "parked"), (8, "another")):
        session = small(api, name, session_id, seed)
        done = practise(session, name, 45)
        if session_id == "parked":
            server.close_tenant(api.tenant_id)
        done += practise(session, name, 45, start=45)
        learned.append([done, known(session), drawn(session, 5)])
        _delete(session)
    assert learned[0] == learned[1]
    assert learned[0] != learned[2]


@pytest.mark.parametrize("name", EVERY)
def test_without_any_data_there_is_nothing_to_train_on(api: Api, name: str) -> None:
    session = small(api, name)
    with refused() as failure:
        train(session, 10)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "told nothing yet" in failure.message
    assert not session.metrics().updates


@pytest.mark.parametrize("name", EVERY)
def test_an_algorithm_names_the_kinds_of_actions_that_it_does_not_work_on(
    api: Api, name: str
) -> None:
    algorithm = algorithm_named(name)
    kinds = {
        "discrete": (algorithm.discrete, discrete(2)),
        "box": (algorithm.continuous, BOX),
        "open_labels": (
            algorithm.open_actions,
            learning_pb2.Space(open_labels=learning_pb2.OpenLabelsSpace()),
        ),
    }
    for kind, (works, space) in kinds.items():
        if works:
            _delete(Session(api, name, kind, state_space=STATES, action_space=space))
            continue
        with refused() as failure:
            Session(api, name, kind, state_space=STATES, action_space=space)
        assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
        assert failure.reason == "ALGORITHM_NOT_SUPPORTED"
        assert list(failure.fields) == ["action_space"]
        assert name in failure.message


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_number_of_another_shape_or_outside_the_space_is_refused_and_changes_nothing(
    api: Api, name: str
) -> None:
    session = small(api, name)
    [good] = told(name, 1)
    boxed = good.action.WhichOneof("value") == "numbers"
    bad = {
        "reward": learning_pb2.Experience(reward=float("nan")),
        "state": learning_pb2.Experience(state=_numbers(0.1, 0.2)),
        "action": learning_pb2.Experience(
            action=_action(9.0) if boxed else learning_pb2.Action(number=2)
        ),
    }
    for field, wrong in bad.items():
        one = learning_pb2.Experience()
        one.CopyFrom(good)
        one.ClearField(field)
        one.MergeFrom(wrong)
        with refused() as failure:
            session.record(good, one)
        assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
        [named] = failure.fields
        assert named.removesuffix("[0]") == f"steps[1].{field}"
    assert not session.stored().transitions


@pytest.mark.parametrize("name", ON_POLICY)
def test_what_learns_from_its_own_behaviour_must_know_how_probable_that_was(
    api: Api, name: str
) -> None:
    session = small(api, name)
    [of_others] = told(name, 1)
    of_others.ClearField("probability")
    with refused() as failure:
        session.record(of_others)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert f"{name} learns only from its own behaviour" in failure.message
    assert not session.stored().transitions


def _numbers(*values: float) -> learning_pb2.State:
    found = learning_pb2.State()
    found.numbers.values.extend(values)
    return found


def _action(*values: float) -> learning_pb2.Action:
    found = learning_pb2.Action()
    found.numbers.values.extend(values)
    return found


@pytest.mark.parametrize("name", ["linucb", "sarsa", pytest.param("dqn", marks=needs_torch)])
def test_two_writers_are_learned_from_one_after_the_other(api: Api, name: str) -> None:
    session = small(api, name)

    def write(start: int) -> None:
        for number in range(start, start + 40, 4):
            session.record(*told(name, 4, start=number))

    writers = [threading.Thread(target=write, args=(start,)) for start in (0, 40)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stored = session.stored()
    assert (stored.transitions, stored.learned, stored.episodes_completed) == (80, 80, 80)
    assert stored.total_reward == pytest.approx(sum(one.reward for one in told(name, 80)))
    _delete(session)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_damaged_checkpoints_are_named_and_their_sessions_can_be_deleted(tmp_path: Path) -> None:
    names = TABLES_AND_BANDITS + (NETWORKS if find_spec("torch") else [])
    with local_server(tmp_path / "data") as server:
        api = learner(server.keys)
        for name in names:
            small(api, name, name).record(*told(name, 5))
            server.close_tenant(api.tenant_id)
        with server.database(api.tenant_id) as database:
            rows = database.execute("SELECT session, data FROM learning_checkpoints").fetchall()
            assert len(rows) == len(names)
            database.executemany(
                "UPDATE learning_checkpoints SET data = ? WHERE session = ?",
                [(_with_a_bit_changed(data), session) for session, data in rows],
            )
        for name in names:
            with refused() as failure:
                small(api, name, name)
            assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
            assert failure.metadata["id"] == name
            asked = pb.DeleteLearningSessionRequest(session_id=name)
            api.learning.DeleteLearningSession(asked)
            assert not small(api, name, name).resumed


def _with_a_bit_changed(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _delete(session: Session) -> None:
    session.api.learning.DeleteLearningSession(
        pb.DeleteLearningSessionRequest(session_id=session.id)
    )
