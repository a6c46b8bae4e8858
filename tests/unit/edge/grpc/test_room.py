"""Room in memory: shared out in turn, and given back."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.errors import FailedPrecondition, ResourceExhausted
from mneme_server.common.process_limits import MIB, RESERVE_BYTES, MemoryLimit, find_limit
from mneme_server.edge.grpc import room as rooms
from mneme_server.edge.grpc.room import Room
from mneme_server.edge.grpc.wire import parse


@dataclass
class Limit:
    """A limit of which tests say how much is free."""

    left: int
    bytes: int = 1024 * MIB
    name: str = "memory of this test"
    address_space: bool = False

    def free(self) -> int:
        return self.left


def room_of(limit: Limit, threads: int = 8) -> Room:
    return Room(cast(MemoryLimit, limit), threads)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_PATIENCE_S", 0.05)


def test_a_request_without_room_is_refused_and_told_to_try_again() -> None:
    room = room_of(Limit(360 * MIB))
    with room.taken(30 * MIB):
        with pytest.raises(ResourceExhausted) as refused, room.taken(30 * MIB):
            pass
        assert refused.value.retry_after_s
        with room.taken(5 * MIB):  # Who is smaller fits beside it.
            pass
    with room.taken(30 * MIB):
        pass


def test_a_request_that_failed_gives_its_room_back() -> None:
    room = room_of(Limit(360 * MIB))
    for _ in range(10):
        with pytest.raises(ValueError, match="of the call"), room.taken(30 * MIB):
            raise ValueError("of the call")


def test_a_request_waits_for_the_room_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_PATIENCE_S", 60.0)
    room, entered = room_of(Limit(360 * MIB)), threading.Event()

    def second() -> None:
        with room.taken(30 * MIB):
            entered.set()

    thread = threading.Thread(target=second)
    with room.taken(30 * MIB):
        thread.start()
        assert not entered.is_set()
    thread.join(60)
    assert entered.is_set()


def test_what_else_the_process_holds_leaves_less_room() -> None:
    limit = Limit(500 * MIB)
    room = room_of(limit)
    room.check()
    limit.left = RESERVE_BYTES + MIB
    room.check()
    with pytest.raises(ResourceExhausted), room.taken(MIB):
        pass
    limit.left = MIB
    with pytest.raises(ResourceExhausted):
        room.check()
    limit.left = 500 * MIB
    room.check()


def test_a_limit_that_leaves_too_little_is_refused_with_what_is_needed() -> None:
    with pytest.raises(FailedPrecondition, match=r"memory of this test is limited to 1024 MiB.*"
                       r" 8 threads .* needs 1164 MiB"):  # fmt: skip
        room_of(Limit(100 * MIB))


def test_no_more_may_be_received_at_once_than_there_is_room_for() -> None:
    few, many = room_of(Limit(1000 * MIB), 8), room_of(Limit(1000 * MIB), 64)
    assert few.max_message_bytes == 8 * many.max_message_bytes == (1000 - 160) * MIB // 16


def test_a_message_that_found_no_memory_to_be_parsed_is_not_called_broken() -> None:
    def starved(_raw: bytes) -> pb.RecordEventsRequest:
        from google.protobuf.message import DecodeError

        raise DecodeError("Error parsing message with type 'X': Arena alloc failed")

    with pytest.raises(MemoryError):
        parse(starved, pb.RecordEventsRequest.DESCRIPTOR, b"")


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/a/b", "sys/fs/cgroup/a/b/memory.max"),
        ("0::/a/b", "sys/fs/cgroup/a/memory.max"),
        ("0::/../outside", "sys/fs/cgroup/memory.max"),
        ("4:cpu,memory:/a", "sys/fs/cgroup/memory/a/memory.limit_in_bytes"),
        ("4:memory:/not/here", "sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ],
)
def test_a_limit_of_the_control_group_or_one_around_it_is_found(
    tmp_path: Path, line: str, file: str
) -> None:
    pytest.importorskip("resource")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"1:name=systemd:/\n{line}\n")
    assert find_limit(tmp_path) is None
    limit = tmp_path / file
    limit.parent.mkdir(parents=True)
    for unlimited in ("max\n", "9223372036854771712\n"):
        limit.write_text(unlimited)
        assert find_limit(tmp_path) is None
    limit.write_text(f"{64 * MIB}\n")
    found = find_limit(tmp_path)
    assert found is not None
    assert found.bytes == 64 * MIB
    assert found.free() < 64 * MIB
