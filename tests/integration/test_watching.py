"""Following events as they are recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import common_pb2
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api, failure_of, grpc, refused
from support.making import TOOL_CALL, TOOL_ERROR, event, record, stream
from support.operations import finished
from support.server import local_server


@contextmanager
def watching(api: Api, **fields: Any) -> Iterator[Any]:
    """Watch for the block, from the point where watching began."""
    following = api.events.WatchEvents(events_pb.WatchEventsRequest(**fields), timeout=30)
    first = next(following)
    assert not first.HasField("event")
    assert first.cursor
    try:
        yield following
    finally:
        following.cancel()


def take(following: Any, count: int) -> list[events_pb.WatchEventsResponse]:
    return [next(following) for _ in range(count)]


def seen_ids(answers: list[events_pb.WatchEventsResponse]) -> list[str]:
    return [answer.event.id for answer in answers]


def test_a_watcher_sees_what_is_recorded_from_now_on_and_nothing_before(api: Api) -> None:
    record(api, event("before", id="before"))
    with watching(api) as following:
        record(api, event("1", id="1", at=5), event("2", id="2", at=1))
        record(api, event("3", "t", id="3"))
        assert seen_ids(take(following, 3)) == ["1", "2", "3"], "in the order of recording"


def test_a_watcher_gets_the_events_as_they_are_listed(api: Api) -> None:
    with watching(api) as following:
        record(api, event("1", agent_id="a", payload={"k": [1, "x"]}))
        answer = next(following)
    assert answer.event == api.events.ListEvents(events_pb.ListEventsRequest()).events[0]


def test_watching_from_zero_begins_with_the_first_event_ever(api: Api) -> None:
    stream(api, [event("x", id=f"{n}") for n in range(1_200)])
    with watching(api, after_cursor="0") as following:
        assert seen_ids(take(following, 1_200)) == [f"{n}" for n in range(1_200)]


def test_a_watcher_that_resumes_with_its_last_cursor_misses_and_repeats_nothing(api: Api) -> None:
    with watching(api) as following:
        record(api, *[event("x", id=f"{n}") for n in range(5)])
        last = take(following, 3)[-1].cursor
    record(api, event("x", id="5"))
    with watching(api, after_cursor=last) as following:
        assert seen_ids(take(following, 3)) == ["3", "4", "5"]


def test_a_cursor_that_is_ahead_of_all_events_goes_on_with_those_that_come_next(api: Api) -> None:
    """As after a backup was restored: silence until as many are recorded again would lose them."""
    record(api, event("before", id="before"))
    with watching(api, after_cursor="1000000") as following:
        record(api, event("x", id="next"))
        assert seen_ids(take(following, 1)) == ["next"]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_cursor_from_before_a_restore_misses_nothing_that_is_recorded_after_it(
    admin: Api, api: Api
) -> None:
    record(api, event("x", id="kept"))
    made = finished(admin, admin_pb.BackupRequest(tenant_id=api.tenant_id))
    with watching(api) as following:
        record(api, event("x", id="lost"), event("x", id="lost, too"))
        last = take(following, 2)[-1].cursor
    request = admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup=Path(made.path).name)
    finished(admin, request)
    since = [f"new {n}" for n in range(4)]
    record(api, *(event("x", id=one) for one in since))
    with watching(api, after_cursor=last) as following:
        assert seen_ids(take(following, 4)) == since


def test_the_first_message_is_a_place_to_resume_from(api: Api) -> None:
    following = api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=30)
    cursor = next(following).cursor
    following.cancel()
    record(api, event("x", id="meanwhile"))
    with watching(api, after_cursor=cursor) as following:
        assert seen_ids(take(following, 1)) == ["meanwhile"]


def test_a_watcher_sees_only_what_its_filters_let_through(api: Api) -> None:
    batch = [
        event("1", "s", id="1", agent_id="a"),
        event("2", "t", TOOL_CALL, id="2", agent_id="a"),
        event("3", "s", TOOL_ERROR, id="3", agent_id="b"),
        event("4", "s", id="last", agent_id="a", severity=common_pb2.SEVERITY_CRITICAL),
    ]
    for fields, expected in (
        ({"session_id": "s"}, ["1", "3", "last"]),
        ({"agent_id": "a"}, ["1", "2", "last"]),
        ({"event_types": [TOOL_CALL, TOOL_ERROR]}, ["2", "3"]),
        ({"min_severity": common_pb2.SEVERITY_ERROR}, ["3", "last"]),
        ({"session_id": "s", "agent_id": "a"}, ["1", "last"]),
    ):
        record(api, *batch)
        with watching(api, after_cursor="0", **fields) as following:
            assert seen_ids(take(following, len(expected))) == expected, fields


def test_nothing_is_missed_while_many_write_at_once(api: Api) -> None:
    writers, batches, size = 4, 12, 5
    with watching(api) as following:

        def write(writer: int) -> None:
            for batch in range(batches):
                ids = [f"{writer}-{batch}-{n}" for n in range(size)]
                record(api, *[event("x", f"s{writer}", id=name) for name in ids])

        threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)]
        for thread in threads:
            thread.start()
        answers = take(following, writers * batches * size)
        for thread in threads:
            thread.join()
    seen = seen_ids(answers)
    assert len(set(seen)) == len(seen)
    cursors = [int(answer.cursor) for answer in answers]
    assert cursors == sorted(cursors)
    for writer in range(writers):
        mine = [name for name in seen if name.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{b}-{n}" for b in range(batches) for n in range(size)]


def test_beyond_its_seats_the_server_refuses_streams_and_still_answers_calls(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "data", max_streams=4, workers=9, max_uploads=1) as server:
        api = server.keys.tenant()
        with watching(api) as first, watching(api):
            with refused() as failure:
                list(api.events.WatchEvents(events_pb.WatchEventsRequest()))
            assert failure.code == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert failure.reason == "TOO_MANY_STREAMS"
            assert failure.retry_after_s is not None
            record(api, event("x", id="still served"))
            assert seen_ids(take(first, 1)) == ["still served"]
        for _ in range(100):  # The seats are free once the server has noticed the ends.
            try:
                with watching(api):
                    break
            except grpc.RpcError as error:
                if failure_of(error).reason != "TOO_MANY_STREAMS":
                    raise
                threading.Event().wait(0.05)
        else:
            raise AssertionError("the seats were never free again")


def test_shutting_down_tells_watchers_to_resume_and_keeps_what_they_saw(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant("watched")
        following = api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=30)
        next(following)
        record(api, event("x", id="1"))
        (answer,) = take(following, 1)
        stopping = threading.Thread(target=server.application.stop)
        stopping.start()
        with refused() as failure:
            next(following)
        stopping.join()
        server.application.stop = lambda: None  # type: ignore[method-assign]  # Done already.
    assert failure.code == grpc.StatusCode.UNAVAILABLE
    assert failure.reason == "INITIALIZATION_FAILED"
    assert failure.retry_after_s is not None
    with local_server(tmp_path / "data") as server:
        again = server.keys.key(api.tenant_id)
        record(again, event("x", id="2"))
        with watching(again, after_cursor=answer.cursor) as following:
            assert seen_ids(take(following, 1)) == ["2"]


def test_deleting_a_tenant_ends_its_watchers(server: Any) -> None:
    api = server.keys.tenant("watched-gone")
    record(api, event("x"))
    following = api.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=20)
    next(following)
    request = admin_pb.DeleteTenantRequest(tenant_id=api.tenant_id)
    finished(server.keys.admin, request)
    with refused() as failure:
        next(following)
    assert failure.code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAUTHENTICATED)
    assert not (server.data_dir / "tenants" / api.tenant_id).exists()


def test_a_watch_of_a_project_sees_the_events_of_its_sessions(api: Api) -> None:
    for name in ("shop", "bank"):
        api.events.StartSession(events_pb.StartSessionRequest(session_id=name, project=name))
    record(api, event("0", "shop", id="0"), event("0", "bank", id="other 0"))
    with (
        watching(api, project="shop") as following,
        watching(api, project="shop", after_cursor="0") as resumed,
    ):
        record(api, event("1", "bank", id="other 1"), event("1", "shop", id="1"))
        record(api, event("2", "nowhere", id="other 2"), event("2", "shop", id="2"))
        assert seen_ids(take(following, 2)) == ["1", "2"]
        assert seen_ids(take(resumed, 3)) == ["0", "1", "2"]
