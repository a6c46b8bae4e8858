"""Sessions whose algorithm trains a network in a process of its own, over the API."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

from support.api import grpc, refused
from support.learning import Session, discrete, learner, plain
from support.server import LocalServer

STATES = [{"task_type": "auth"}, {"task_type": "ui"}]
CONFIG = {
    "learning_starts": 32, "train_every": 2, "learning_rate": 0.005, "hidden_size": 16,
    "batch_size": 32, "epsilon_episodes": 400,
}  # fmt: skip


def test_what_works_is_learned_and_outlives_the_process_that_trains(server: LocalServer) -> None:
    api = learner(server.keys)
    session = Session(api, "dqn", action_space=discrete(labels=["a", "b"]), config=CONFIG)
    before = _workers()

    _teach(session, 320)

    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]
    [worker] = _workers() - before
    os.kill(worker, signal.SIGKILL)
    with refused() as failure:
        _teach(session, 40)
    assert failure.code == grpc.StatusCode.INTERNAL
    assert "the process that trains was ended by signal 9" in failure.message

    _teach(session, 20)  # From the last checkpoint on; what was told since is learned again.

    stored = session.stored()
    assert stored.learned == stored.transitions >= 340
    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]
    server.close_tenant(api.tenant_id)
    assert _workers() <= before
    assert [plain(session.predict(of).action) for of in STATES] == ["a", "b"]


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
        if parent == os.getpid() and b"mneme_server.learning.deep.worker" in command:
            found.add(int(process.name))
    return found
