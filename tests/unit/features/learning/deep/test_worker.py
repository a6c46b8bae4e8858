"""Training in a process of its own: it begins, learns, is killed, goes on, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

from mneme_server.common.errors import FailedPrecondition, ResourceExhausted, WorkFailed
from mneme_server.common.process_limits import MIB
from mneme_server.features.learning.deep.process import Worker
from support.deep import learner_of, practise, score, tried
from support.folders import wait_until

pytestmark = pytest.mark.slow


def test_it_learns_in_a_process_that_can_be_killed_and_goes_on_from_what_was_saved() -> None:
    learner = learner_of("dqn", start=None)
    chance = np.random.default_rng(1)
    try:
        practise(learner, 400, chance)
        before = score(learner)
        assert before > 0.75
        learner.dump()
        pid = learner.worker_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        with pytest.raises(WorkFailed, match=r"was ended by signal 9.*goes on from what was saved"):
            practise(learner, 400, chance)
        assert score(learner) == before  # Asking needs no process.
        practise(learner, 100, chance)

        assert learner.worker_pid not in {None, pid}
        # 400 before it was saved, and of those after: what lay ready when it was killed is lost.
        assert learner.dump()["trainer"]["seen"] >= 450
        assert score(learner) > 0.75
    finally:
        learner.close()
    assert learner.worker_pid is None


def test_in_the_background_it_is_told_that_the_process_was_killed_while_transitions_lay_ready() -> (
    None
):
    learner = learner_of("dqn", start=None, background=True, train_every=4)
    chance = np.random.default_rng(1)
    try:
        practise(learner, 101, chance)
        learner.dump()
        pid = learner.worker_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkFailed, match="ended by signal 9"):
            practise(learner, 400, chance)
    finally:
        learner.close()


def test_what_the_trainer_refuses_is_told_and_does_not_end_it() -> None:
    learner = learner_of("sac", start=None)
    try:
        with pytest.raises(FailedPrecondition, match="no transitions"):
            learner.train(1)
        pid = learner.worker_pid
        learner.learn([tried(learner, np.random.default_rng(1)) for _ in range(10)])
        assert learner.train(2).updates == 2
        assert learner.worker_pid == pid
    finally:
        learner.close()


def test_a_process_that_takes_too_much_memory_is_ended_and_says_what_helps() -> None:
    def small(setup: object) -> Worker:
        assert isinstance(setup, dict)
        return Worker(setup, memory_bytes=40 * MIB)  # Less than torch takes.

    learner = learner_of("dqn", start=small)
    try:
        with pytest.raises(ResourceExhausted, match="choose a smaller buffer_size"):
            practise(learner, 100, np.random.default_rng(1))
    finally:
        learner.close()


def test_it_ends_with_the_server_which_never_imports_torch_even_if_that_is_killed(
    tmp_path: Path,
) -> None:
    told = tmp_path / "pid"
    script = f"""
import os, pathlib, signal, sys
import numpy as np
from support.deep import learner_of, practise, score
learner = learner_of("dqn", start=None)
practise(learner, 60, np.random.default_rng(1))
score(learner)
learner.dump()
assert "torch" not in sys.modules
pathlib.Path({str(told)!r}).write_text(str(learner.worker_pid))
os.kill(os.getpid(), signal.SIGKILL)
"""
    tests = str(Path(__file__).parents[4])
    environment = {**os.environ, "PYTHONPATH": tests}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=False, capture_output=True, text=True
    )

    assert told.exists(), done.stderr
    process = Path("/proc") / told.read_text()
    wait_until(lambda: _state(process) == "Z", "the process that trains is gone")


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
