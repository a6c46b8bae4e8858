"""Jobs: functions on threads, and work in processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mneme_server.common.errors import DataLoss, ResourceExhausted, WorkFailed
from mneme_server.common.progress import Cancelled, Progress, Silent, Step
from mneme_server.engine.background.jobs import InWorker, Job, Jobs

PATIENCE_S = 30.0
MIB = 1024 * 1024


class _Foreground:
    def __init__(self) -> None:
        self.gave_way = 0

    def give_way(self) -> None:
        self.gave_way += 1


@pytest.fixture
def foreground() -> _Foreground:
    return _Foreground()


@pytest.fixture
def jobs(foreground: _Foreground) -> Iterator[Jobs]:
    running = Jobs(foreground.give_way, threads=2, processes=1, memory_bytes=200 * MIB)
    yield running
    running.close()


def in_worker(name: str, **arguments: object) -> InWorker:
    return InWorker(f"support.jobs:{name}", arguments)


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def started(jobs: Jobs, work: InWorker) -> tuple[Job, int]:
    """Start work that hangs; return it and its process."""
    seen = threading.Event()
    job = jobs.submit("t", work, on_progress=lambda _progress: seen.set())
    assert seen.wait(PATIENCE_S)
    assert job.progress is not None
    return job, job.progress.done


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody asked for its exit code has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_process_does_what_it_is_told_and_says_how_far_it_is(jobs: Jobs) -> None:
    said: list[Progress] = []
    job = jobs.submit("t", in_worker("add", a=2, b=3), on_progress=said.append)
    assert job.result() == 5
    assert said == [Progress("adding", 1, 2), Progress("adding", 2, 2)]


def test_a_process_runs_nothing_of_the_folder_in_which_the_server_was_started(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mneme_server.py").write_text("raise SystemExit('of the folder')")
    monkeypatch.chdir(tmp_path)
    test_a_process_does_what_it_is_told_and_says_how_far_it_is(jobs)


def test_a_function_gives_way_to_calls_whenever_it_says_how_far_it_is(
    jobs: Jobs, foreground: _Foreground
) -> None:
    def work(step: Step) -> str:
        step.report("half", 1, 2)
        step.report("all", 2, 2)
        return "done"

    assert jobs.submit("t", work).result() == "done"
    assert foreground.gave_way >= 1


def test_a_process_has_no_socket_no_secret_one_thread_and_the_lowest_priority(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_ADMIN_KEY", "mn_secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as inherited:
        inherited.set_inheritable(True)
        is_like = jobs.submit("t", in_worker("describe")).result()
    assert is_like["sockets"] == []
    assert is_like["files"] <= 5
    assert is_like["nice"] == 19
    assert is_like["batch"]
    assert is_like["omp"] == "1"
    assert is_like["threads"] == ["MainThread", "parent"]
    assert not [name for name in is_like["environment"] if "KEY" in name or "MNEME" in name]


def test_a_process_imports_what_its_work_names_and_no_more(jobs: Jobs) -> None:
    modules = jobs.submit("t", in_worker("describe")).result()["modules"]
    own = {name for name in modules if name.startswith(("mneme", "support"))}
    assert own == {
        "mneme_server",
        "mneme_server.common",
        "mneme_server.common.progress",
        "mneme_server.engine",
        "mneme_server.engine.background",
        "support",
        "support.jobs",
    }
    heavy = {"faiss", "numpy", "onnxruntime", "sqlalchemy", "grpc", "google.protobuf", "tantivy"}
    assert not heavy & set(modules)


def test_what_a_process_raises_is_raised_here(jobs: Jobs) -> None:
    with pytest.raises(DataLoss, match="it is damaged") as raised:
        jobs.submit("t", in_worker("refuse")).result()
    assert raised.value.metadata == {"kind": "event"}


def test_a_bug_in_a_process_is_told_without_its_details(jobs: Jobs) -> None:
    with pytest.raises(WorkFailed, match="ZeroDivisionError") as raised:
        jobs.submit("t", in_worker("stumble")).result()
    assert "only the log" not in raised.value.message


def test_a_process_that_is_killed_from_outside_fails_with_how(jobs: Jobs) -> None:
    job, pid = started(jobs, in_worker("hang"))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkFailed, match="ended by signal 9"):
        job.result()
    assert jobs.submit("t", in_worker("add", a=1, b=1)).result() == 2


@pytest.mark.parametrize("name", ["take_memory", "take_memory_at_once"])
def test_a_process_that_takes_too_much_memory_ends_with_how_much_it_may(
    jobs: Jobs, name: str
) -> None:
    with pytest.raises(ResourceExhausted, match=r"200 MiB.*MNEME_JOB_MEMORY_BYTES"):
        jobs.submit("t", in_worker(name, mib=700)).result()


def test_work_may_ask_for_more_memory_than_usual(jobs: Jobs) -> None:
    work = InWorker("support.jobs:take_memory", {"mib": 250}, memory_bytes=400 * MIB)
    assert jobs.submit("t", work).result() == 250


def test_a_process_that_is_called_off_is_gone(jobs: Jobs) -> None:
    job, pid = started(jobs, in_worker("hang"))
    job.cancel()
    with pytest.raises(Cancelled):
        job.result()
    assert is_gone(pid)


def test_closing_ends_every_process(foreground: _Foreground) -> None:
    jobs = Jobs(foreground.give_way, threads=1, processes=1, memory_bytes=200 * MIB)
    job, pid = started(jobs, in_worker("hang"))
    waiting = jobs.submit("t", in_worker("add", a=1, b=1))
    jobs.close()
    assert eventually(lambda: is_gone(pid))
    for one in (job, waiting):
        with pytest.raises(Cancelled):
            one.result()


_PARENT = """
import sys, threading
from mneme_server.engine.background.jobs import Jobs
from mneme_server.engine.background.jobs import InWorker
from mneme_server.engine.scheduling.foreground import Foreground

jobs = Jobs(Foreground().give_way, threads=1, processes=1, memory_bytes=10**9)
jobs.submit("t", InWorker(sys.argv[1]), on_progress=lambda said: print(said.done, flush=True))
threading.Event().wait()
"""


@pytest.mark.parametrize("name", ["hang", "hang_alone", "hang_busy"])
def test_a_process_does_not_outlive_a_server_that_was_killed(name: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, f"support.jobs:{name}"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    with parent:
        worker = int(parent.stdout.readline())
        assert not is_gone(worker)
        parent.kill()
    assert eventually(lambda: is_gone(worker))


def test_a_tenant_has_one_job_at_a_time_and_others_do_not_wait_for_it(jobs: Jobs) -> None:
    go, at_work = threading.Event(), []

    def work(name: str) -> Callable[[Step], None]:
        def run(step: Step) -> None:
            at_work.append(name)
            go.wait(PATIENCE_S)

        return run

    first = jobs.submit("a", work("a1"))
    second = jobs.submit("a", work("a2"))
    other = jobs.submit("b", work("b1"))
    assert eventually(lambda: len(at_work) == 2)
    assert sorted(at_work) == ["a1", "b1"]
    go.set()
    for job in (first, second, other):
        job.result()
    assert at_work[2] == "a2"


def test_a_job_that_waits_is_called_off_without_having_begun(jobs: Jobs) -> None:
    go = threading.Event()
    first = jobs.submit("a", lambda _step: go.wait(PATIENCE_S))
    ended: list[Job] = []
    second = jobs.submit("a", lambda _step: pytest.fail("it began"), on_end=ended.append)
    assert jobs.forget(second)
    assert ended == [second]
    with pytest.raises(Cancelled):
        second.result()
    go.set()
    assert first.result()
    assert not jobs.forget(first)


def test_a_function_passes_on_what_its_process_says_and_calls_it_off(jobs: Jobs) -> None:
    pids: list[int] = []

    def work(step: Step) -> object:
        return step.apart("support.jobs:hang")

    job = jobs.submit("t", work, on_progress=lambda said: pids.append(said.done))
    assert eventually(lambda: any(pids))
    job.cancel()
    with pytest.raises(Cancelled):
        job.result()
    assert eventually(lambda: is_gone(max(pids)))


def test_what_is_done_apart_is_done_here_where_there_is_no_process() -> None:
    assert Silent().apart("support.jobs:add", a=1, b=2) == 3
