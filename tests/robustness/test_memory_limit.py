"""A process with little memory refuses what does not fit, and lives."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path

import grpc
import pytest
from mneme.v1 import event_service_pb2 as pb
from support.api import Api
from support.server import ServerProcess

MIB = 1024 * 1024
TOO_LITTLE = 800 * MIB
THREADS = 8
BATCHES = 4

pytest.importorskip("resource")


def test_a_server_that_has_too_little_memory_says_how_much_it_needs(tmp_path: Path) -> None:
    assert needed(tmp_path, 300 * MIB) > 300 * MIB
    assert needed(tmp_path, TOO_LITTLE) > TOO_LITTLE


def test_large_calls_beyond_the_memory_are_refused_and_the_process_lives(tmp_path: Path) -> None:
    least = needed(tmp_path, TOO_LITTLE)
    server = ServerProcess(tmp_path / "data", address_space=least, workers=24)
    try:
        api = server.keys.tenant()
        outcomes: Counter[str] = Counter()
        senders = [
            threading.Thread(target=send_batches, args=(api, sender, outcomes))
            for sender in range(THREADS)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert server.process.poll() is None, server.log
        assert outcomes.total() == THREADS * BATCHES
        assert set(outcomes) <= {"OK", "RESOURCE_EXHAUSTED"}
        assert outcomes["OK"], server.log
        for index in range(20):
            record(api, [f"a small call after the large ones {index}"])
    finally:
        code = server.stop()
    assert code == 0


def test_a_message_that_is_larger_than_may_be_received_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    least = needed(tmp_path, TOO_LITTLE)
    server = ServerProcess(tmp_path / "data", address_space=least, workers=24)
    try:
        api = server.keys.tenant()
        with pytest.raises(grpc.RpcError) as refused:
            record(api, ["large " * 2_000] * 900)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        record(api, ["small"])
    finally:
        server.stop()


def needed(folder: Path, address_space: int) -> int:
    """Return the bytes of address space that a server asks for when it has too little."""
    with pytest.raises(AssertionError) as ended:
        ServerProcess(folder / "data", address_space=address_space, workers=24)
    named = re.search(r"the server needs (\d+) MiB at least", str(ended.value))
    assert named, ended.value
    assert "Traceback" not in str(ended.value)
    return int(named[1]) * MIB


def send_batches(api: Api, sender: int, outcomes: Counter[str]) -> None:
    for index in range(BATCHES):
        try:
            record(api, [f"{sender} {index} {line} " + "words " * 2_000 for line in range(100)])
        except grpc.RpcError as error:
            outcomes[error.code().name] += 1
        else:
            outcomes["OK"] += 1


def record(api: Api, texts: list[str]) -> None:
    events = [pb.NewEvent(session_id="s", event_type="message", text=text) for text in texts]
    api.events.RecordEvents(pb.RecordEventsRequest(events=events), timeout=120)
