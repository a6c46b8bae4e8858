"""A server that is told to stop ends with exit code 0, whatever it is doing and however often."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from mneme.v1 import event_service_pb2 as events_pb
from support.api import refused
from support.making import event, list_events, record
from support.server import ServerProcess, environment, server_process
from unit.engine.embedding.scripted_http import Answer, Received, ScriptedServer

_SEED, _ROUNDS = "MNEME_SIGNALS_SEED", "MNEME_SIGNALS_ROUNDS"
"""Variables: 300 rounds on demand, or the seed of a round that failed."""

ROUNDS = int(os.environ.get(_ROUNDS) or 8)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HANGS_S = 600.0

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux tells which signals are held"
)


def _start(folder: Path, *before: str, **changed: object) -> subprocess.Popen[str]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*before, sys.executable, "-m", "mneme_server", "serve"],
            env=environment(folder / "data", **changed),
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip


def _wait_until_held(process: subprocess.Popen[str]) -> None:
    """Wait until the process has begun: before, signals end it as they end any."""
    bit = 1 << (signal.SIGTERM - 1)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        held = next(line for line in status.read_text().splitlines() if line.startswith("SigBlk"))
        if int(held.split()[1], 16) & bit:
            return
        time.sleep(0.001)
    raise AssertionError(f"the server ended with {process.returncode}")


def _ends_with(process: subprocess.Popen[str]) -> int:
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("the server did not end") from None
    return process.returncode


@needs_proc
def test_signals_at_any_moment_end_the_server_with_exit_code_0(tmp_path: Path) -> None:
    seed = int(os.environ.get(_SEED) or 1)  # The same each time, unless one is given.
    for number in range(seed, seed + ROUNDS):
        rng = random.Random(number)
        process = _start(tmp_path, drain_seconds=rng.choice([0, 5]))
        _wait_until_held(process)
        time.sleep(rng.uniform(0, 3))
        for _ in range(rng.randint(1, 4)):
            process.send_signal(rng.choice(SIGNALS))
            time.sleep(rng.choice([0, 0, 0.01, 0.3]))
        code = _ends_with(process)
        assert code == 0, f"{_SEED}={number}: {code}\n{(tmp_path / 'log').read_text()}"


@pytest.mark.parametrize("numbers", [SIGNALS, (signal.SIGTERM,) * 20])
def test_signals_as_soon_as_it_serves_end_it_with_exit_code_0(
    tmp_path: Path, numbers: Sequence[signal.Signals]
) -> None:
    server = ServerProcess(tmp_path / "data")
    for number in numbers:
        server.process.send_signal(number)
    assert server.stop() == 0


def test_a_server_that_nohup_runs_outlives_its_terminal(tmp_path: Path) -> None:
    process = _start(tmp_path, "nohup", log_level="info")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("serving on ")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert _ends_with(process) == 0
    log = (tmp_path / "log").read_text()
    assert "SIGTERM" in log
    assert "SIGHUP" not in log


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    with ScriptedServer() as service:
        yield service


def _vectors(request: Received) -> Answer:
    return Answer(body={"embeddings": [[1.0, 0.0]] * len(request.body["input"])})


def test_calls_in_flight_are_answered_whatever_signals_come(
    tmp_path: Path, service: ScriptedServer
) -> None:
    answers = threading.Event()

    def when_let(request: Received) -> Answer:
        assert answers.wait(60)
        return _vectors(request)

    service.answers = [_vectors, when_let]
    slow = {"embedder": "ollama:slow", "ollama_base_url": service.url, "drain_seconds": 60}
    with server_process(tmp_path / "data", **slow) as server:
        api = server.keys.tenant()
        request = events_pb.RecordEventsRequest(events=[event("slow")], wait_indexed=True)
        call = api.events.RecordEvents.future(request)
        while len(service.received) < 2:
            time.sleep(0.01)
        for number in SIGNALS:
            server.process.send_signal(number)
        with refused() as failure:
            while True:  # Until it takes no more calls.
                list_events(api)
        assert (failure.code, failure.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 1.0)
        server.process.send_signal(signal.SIGTERM)
        answers.set()
        assert call.result(60).recorded_count == 1
        while server.process.poll() is None:
            with refused() as failure:
                list_events(api)
            assert failure.code == grpc.StatusCode.UNAVAILABLE
        assert server.stop() == 0


def test_an_embedder_that_hangs_does_not_hold_the_end_up(
    tmp_path: Path, service: ScriptedServer
) -> None:
    service.answers = [_vectors, Answer(delay_s=HANGS_S)]
    hanging = {"embedder": "ollama:slow", "ollama_base_url": service.url, "drain_seconds": 0}
    with server_process(tmp_path / "data", **hanging) as server:
        api = server.keys.tenant()
        record(api, event("embedded some day", id="e"))
        while len(service.received) < 2:  # Until it waits for the service.
            time.sleep(0.01)
        assert server.stop() == 0
    service.answers = [_vectors]
    with server_process(tmp_path / "data", **hanging) as server:
        api = server.keys.api(api.secret)
        record(api, event("embedded at once"), wait=True)
        assert "could not be embedded" not in server.log


@needs_proc
def test_a_start_that_hangs_can_be_stopped(tmp_path: Path, service: ScriptedServer) -> None:
    service.answers = [Answer(delay_s=HANGS_S)]
    process = _start(tmp_path, embedder="ollama:slow", ollama_base_url=service.url)
    while not service.received:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert _ends_with(process) == 0
