"""Sessions whose algorithm trains a network in a process of its own, over the API."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb
from mneme.v1 import learning_trust_pb2 as trust_pb
from support.api import failure_of, grpc, refused
from support.learning import Session, discrete, learner, plain, step
from support.server import LocalServer

pytestmark = pytest.mark.slow

STATES = [{"task_type": "auth"}, {"task_type": "ui"}]
CONFIG = {
    "learning_starts": 32, "train_every": 2, "learning_rate": 0.005, "hidden_size": 16,
    "batch_size": 32, "epsilon_episodes": 400,
}  # fmt: skip
_BOX = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[-1.0], high=[1.0]))


def test_what_works_is_learned_and_outlives_the_process_that_trains(server: LocalServer) -> None:
    api = learner(server.keys)
    session = Session(api, "dqn", action_space=discrete(labels=["a", "b"]), config=CONFIG)
    before = _workers()

    _teach(session, 320)

    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]
    for _ in range(5):  # The server may find out between two calls, and go on by itself.
        [worker] = _workers() - before
        os.kill(worker, signal.SIGKILL)
        try:
            _teach(session, 40)
        except grpc.RpcError as error:
            failure = failure_of(error)
            break
    else:
        pytest.fail("five times the process ended, and nobody was told")
    assert failure.code == grpc.StatusCode.INTERNAL
    assert "the process that trains was ended by signal 9" in failure.message

    _teach(session, 20)  # From the last checkpoint on; what was told since is learned again.

    stored = session.stored()
    assert stored.learned == stored.transitions >= 340
    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]
    server.close_tenant(api.tenant_id)
    assert _workers() <= before
    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]


def test_a_session_begins_with_the_encoder_of_another_one_and_goes_on(server: LocalServer) -> None:
    api = learner(server.keys)
    source, target = (
        Session(api, "dqn", name, action_space=discrete(labels=["a", "b"]), config=CONFIG)
        for name in ("source", "target")
    )
    source.record(*_steps(400))
    target.record(*_steps(20))

    found = api.learning.Transfer(
        pb.TransferRequest(
            source_session_id=source.id,
            target_session_id=target.id,
            transfer_type=trust_pb.TRANSFER_TYPE_FREEZE_ENCODER,
            similarity_threshold=0,
        )
    )

    assert found.parameters_transferred > 0
    assert [plain(target.predict(of).action) for of in STATES] == ["a", "b"]
    before = target.metrics().updates
    target.record(*_steps(40))
    assert target.metrics().updates > before
    server.close_tenant(api.tenant_id)
    assert [plain(target.predict(of).action) for of in STATES] == ["a", "b"]


def test_networks_of_another_size_are_refused_with_what_differs(server: LocalServer) -> None:
    api = learner(server.keys)
    spaces = {"action_space": discrete(labels=["a", "b"])}
    source = Session(api, "dqn", "source", config=CONFIG, **spaces)
    source.record(*_steps(64))
    target = Session(api, "dqn", "target", config={**CONFIG, "hidden_size": 32}, **spaces)

    with refused() as failure:
        api.learning.Transfer(
            pb.TransferRequest(source_session_id=source.id, target_session_id=target.id)
        )

    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "differ in hidden_size" in failure.message


def test_without_torch_tables_and_bandits_learn_and_the_others_name_what_is_missing(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = learner(server.keys)
    labels = discrete(labels=["a", "b"])
    earlier = Session(api, "dqn", "earlier", action_space=labels)
    server.close_tenant(api.tenant_id)
    monkeypatch.setitem(sys.modules, "torch", None)  # As if it were not installed.

    for name in ("linucb", "thompson", "q_learning", "sarsa"):
        session = Session(api, name, name, action_space=labels)
        session.reward(session.predict(STATES[0], explore=True).prediction_id, 1.0)
        assert session.predict(STATES[0]).trained
    found = api.learning.ListAlgorithms(pb.ListAlgorithmsRequest()).algorithms
    lacking = [one for one in found if not one.available]
    assert len(lacking) == 8
    assert all(".whl[server,rl]" in one.missing for one in lacking)
    for one in lacking:
        spaces = {"action_space": labels if one.discrete_actions else _BOX, "state_space": _BOX}
        with refused() as failure:
            Session(api, one.name, "new", **spaces)
        assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
        assert failure.reason == "ALGORITHM_NOT_SUPPORTED"
        assert ".whl[server,rl]" in failure.message
    with refused() as failure:
        earlier.predict(STATES[0])
    assert failure.reason == "ALGORITHM_NOT_SUPPORTED"
    assert ".whl[server,rl]" in failure.message


def _steps(count: int) -> list[learning_pb2.Experience]:
    """Each action in each state, by turns; "a" is right in the first one, "b" in the other."""
    return [
        step(STATES[n % 2], "ab"[n // 2 % 2], float(n % 2 == n // 2 % 2), terminated=True)
        for n in range(count)
    ]


def _teach(session: Session, turns: int) -> None:
    for turn in range(turns):
        made = session.predict(STATES[turn % 2], explore=True)
        session.reward(made.prediction_id, float(plain(made.action) == "ab"[turn % 2]))


def _workers() -> set[int]:
    """The processes that train, of this one."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):  # It ended just now.
            continue
        if parent == os.getpid() and b"mneme_server.features.learning.deep.worker" in command:
            found.add(int(process.name))
    return found
