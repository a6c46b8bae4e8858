"""Pages stay in place while rows arrive, and visit each row exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme_server.features.events.store.events import SqlEvents
from support.api import Api
from support.making import at, event, lesson, record
from support.server import LocalServer


def pages(call: Callable[[Any], Any], request: Any, rows: str) -> Iterator[list[Any]]:
    while True:
        answer = call(request)
        yield list(getattr(answer, rows))
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token


def all_pages(call: Callable[[Any], Any], request: Any, rows: str) -> list[Any]:
    return [row for page in pages(call, request, rows) for row in page]


def ids(found: list[Any]) -> list[str]:
    return [row.id for row in found]


times = st.lists(st.integers(0, 5), min_size=1, max_size=14)


@settings(max_examples=25)
@given(times=times, size=st.integers(1, 6), descending=st.booleans())
def test_pages_of_events_visit_each_once_in_the_order_of_time(
    server: LocalServer, times: list[int], size: int, descending: bool
) -> None:
    api, session = _shared(server), _new_session()
    record(api, *[event("x", session, id=f"{session}-{n}", at=t) for n, t in enumerate(times)])
    request = events_pb.ListEventsRequest(session_id=session, page_size=size, descending=descending)
    found = list(pages(api.events.ListEvents, request, "events"))
    assert all(len(page) == size for page in found[:-1])
    assert 1 <= len(found[-1]) <= size
    expected = sorted(range(len(times)), key=lambda n: (times[n], n), reverse=descending)
    assert ids([row for page in found for row in page]) == [f"{session}-{n}" for n in expected]


@settings(max_examples=15)
@given(times=times, size=st.integers(1, 6))
def test_pages_of_sessions_visit_each_once_the_latest_first(
    server: LocalServer, times: list[int], size: int
) -> None:
    api, project = _shared(server), _new_session()
    for n, started in enumerate(times):
        api.events.StartSession(
            events_pb.StartSessionRequest(
                session_id=f"{project}-{n:02}", project=project, started_at=at(started)
            )
        )
    request = events_pb.ListSessionsRequest(project=project, page_size=size)
    found = ids(all_pages(api.events.ListSessions, request, "sessions"))
    expected = sorted(((t, f"{project}-{n:02}") for n, t in enumerate(times)), reverse=True)
    assert found == [name for _, name in expected]


_tenants: dict[str, Api] = {}
_sessions = iter(range(10**9))


def _shared(server: LocalServer) -> Api:
    return _tenants.setdefault(server.address, server.keys.tenant("paging"))


def _new_session() -> str:
    return f"session-{next(_sessions)}"


def test_pages_of_events_stay_in_place_while_events_arrive(api: Api) -> None:
    record(api, *[event("x", id=f"old-{n}", at=n) for n in range(10)])
    request = events_pb.ListEventsRequest(page_size=4)
    seen: list[str] = []
    for number, page in enumerate(pages(api.events.ListEvents, request, "events")):
        seen += ids(page)
        # One before everything, one at the place where the page ended, one at the end.
        record(
            api,
            event("x", id=f"before-{number}", at=-1),
            event("x", id=f"tie-{number}", at=len(seen) - 1),
            event("x", id=f"after-{number}", at=100) if number < 2 else event("x", at=-2),
        )
    assert len(seen) == len(set(seen)), "nothing is repeated"
    assert [name for name in seen if name.startswith("old")] == [f"old-{n}" for n in range(10)]
    assert not [name for name in seen if name.startswith("before")]


def test_pages_of_sessions_stay_in_place_while_sessions_start(api: Api) -> None:
    def start(name: str, started: int) -> None:
        api.events.StartSession(
            events_pb.StartSessionRequest(session_id=name, started_at=at(started))
        )

    for n in range(9):
        start(f"old-{n}", n)
    request = events_pb.ListSessionsRequest(page_size=2)
    seen: list[str] = []
    for number, page in enumerate(pages(api.events.ListSessions, request, "sessions")):
        seen += ids(page)
        start(f"new-{number}", 100 + number)
    assert seen == [f"old-{n}" for n in range(8, -1, -1)]


def test_the_total_counts_all_pages_as_of_each_page(api: Api) -> None:
    for n in range(5):
        lesson(api, f"lesson {n}", lesson_id=f"{n}")
    request = learn_pb.ListLessonsRequest(page_size=2)
    first = api.learn.ListLessons(request)
    assert (len(first.lessons), first.total_size) == (2, 5)
    lesson(api, "one more")
    request.page_token = first.next_page_token
    second = api.learn.ListLessons(request)
    assert (ids(second.lessons), second.total_size) == (["2", "1"], 6)


def test_pages_of_lessons_and_agents_visit_each_once(api: Api) -> None:
    for n in range(7):
        lesson(api, f"lesson {n}", lesson_id=f"{n}")
    record(api, *[event("x", f"s{n}", agent_id=f"agent-{n:02}") for n in range(13)])
    lessons = pages(api.learn.ListLessons, learn_pb.ListLessonsRequest(page_size=3), "lessons")
    assert [ids(page) for page in lessons] == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    request = events_pb.ListAgentsRequest(page_size=5)
    assert ids(all_pages(api.events.ListAgents, request, "agents")) == [
        f"agent-{n:02}" for n in range(13)
    ]


def test_a_page_of_large_events_reaches_the_caller(api: Api) -> None:
    large = "x" * 900_000
    for n in range(20):
        record(api, event("", kind="custom", id=f"{n:02}", at=n, payload={"large": large}))
    found = all_pages(api.events.ListEvents, events_pb.ListEventsRequest(), "events")
    assert ids(found) == [f"{n:02}" for n in range(20)]


def test_a_large_page_of_large_events_reads_no_more_than_an_answer_can_carry(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(300):
        record(api, event("x" * 60_000, id=f"{n:03}", at=n, searchable=False))
    read, page = 0, SqlEvents.page

    def counted(*asked: Any, **more: Any) -> Any:
        nonlocal read
        rows = page(*asked, **more)
        read += len(rows)
        return rows

    monkeypatch.setattr(SqlEvents, "page", counted)
    request = events_pb.ListEventsRequest(page_size=1_000)
    found = list(pages(api.events.ListEvents, request, "events"))
    assert [one for page in found for one in ids(page)] == [f"{n:03}" for n in range(300)]
    assert read <= 100 * len(found)


def test_a_page_of_large_lessons_reaches_the_caller(api: Api) -> None:
    many = [
        learn_pb.Lesson(id=f"{n:03}", title="t", content=f"{n} {'x' * 65_000}", updated_at=at(n))
        for n in range(280)
    ]
    for start in (0, 140):
        part = learn_pb.ImportLessonsRequest(lessons=many[start : start + 140])
        api.learn.ImportLessons(part)
    request = learn_pb.ListLessonsRequest(page_size=1000)
    found = all_pages(api.learn.ListLessons, request, "lessons")
    assert ids(found) == [f"{n:03}" for n in range(279, -1, -1)]
