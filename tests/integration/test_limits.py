"""The ends of what may be sent: whatever is accepted can be read again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import Api, grpc, refused
from support.making import (
    event,
    export_lessons,
    lesson,
    list_events,
    list_lessons,
    record,
    search_lessons,
    session_of,
    verify,
)
from support.server import LocalServer

MOST = 2**53 - 1


def imported(api: Api, **fields: object) -> None:
    item = learn_pb.Lesson(id="l", title="Locks", content="Take them in one order", **fields)  # type: ignore[arg-type]
    request = learn_pb.ImportLessonsRequest(lessons=[item])
    assert api.learn.ImportLessons(request).created_count == 1


def get(api: Api) -> learn_pb.Lesson:
    return api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id="l")).lesson


@pytest.mark.parametrize("payload", [{"face": "\U0001f600"}, {"small": 1e-7}])
def test_an_event_of_the_year_9999_may_hold_anything(api: Api, payload: dict[str, object]) -> None:
    last = Timestamp(seconds=253_402_300_799)
    record(api, event("\U0001f600", id="e", timestamp=last, payload=payload, cost_usd=1e-7))
    (found,) = list_events(api)
    assert (found.timestamp, dict(found.payload)) == (last, payload)
    assert verify(api).valid


def test_a_counter_stops_at_its_end_and_is_read_all_the_same(api: Api) -> None:
    imported(api, access_count=MOST)
    assert [get(api).access_count for _ in range(2)] == [MOST, MOST]
    assert search_lessons(api, "order of locks") == ["l"]
    assert [found.access_count for found in list_lessons(api)] == [MOST]


def test_a_counter_beyond_its_end_is_refused(api: Api) -> None:
    with refused() as failure:
        imported(api, access_count=2**63 - 1)
    assert (failure.code, failure.field) == (
        grpc.StatusCode.INVALID_ARGUMENT, "lessons[0].access_count",
    )  # fmt: skip


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_counter_that_was_stored_as_a_float_is_read_and_mended(
    api: Api, server: LocalServer
) -> None:
    lesson(api, "Locks", lesson_id="l")
    path = server.data_dir / "tenants" / api.tenant_id / "mneme.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE lessons SET access_count = 9.223372036854775807e18")
    assert [found.access_count for found in list_lessons(api)] == [MOST]
    assert [found.access_count for found in export_lessons(api)] == [MOST]
    assert get(api).access_count == MOST
    server.close_tenant(api.tenant_id)  # Counts are written then at the latest.
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT access_count FROM lessons").fetchall() == [(MOST,)]


def test_the_tokens_of_a_session_stop_at_their_end(api: Api) -> None:
    for _ in range(10):
        record(api, *(event("x", input_tokens=10**12, output_tokens=10**12) for _ in range(1000)))
    session = session_of(api, "s")
    assert (session.total_input_tokens, session.total_output_tokens) == (MOST, MOST)
