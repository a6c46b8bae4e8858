"""Watching by Server-Sent Events, exports and uploads as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from support.api import Api
from support.http import Http, events_of
from support.making import event, lesson, list_events, record
from support.server import LocalServer


def watching(http: Http, query: str = "", **headers: str) -> Any:
    return http.client.stream("GET", f"/api/stream{query}", headers=headers)


def begun(answer: httpx2.Response) -> Iterator[tuple[str, str, Any]]:
    """Return the events of a watch, once it is open: its first message is a place alone."""
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    events = events_of(answer)
    place, _, nothing = next(events)
    assert place
    assert nothing is None
    return events


def test_events_are_seen_as_they_are_recorded(api: Api, http: Http) -> None:
    with watching(http, "?sessionId=s") as answer:
        events = begun(answer)
        record(api, event("one", "s"), event("elsewhere", "other"), event("two", "s"))
        first, second = next(events), next(events)
    assert [first[2]["text"], second[2]["text"]] == ["one", "two"]
    assert first[1] == "message"
    assert first[2]["sessionId"] == "s"


def test_a_watch_goes_on_after_the_last_event_that_was_seen(api: Api, http: Http) -> None:
    with watching(http) as answer:
        events = begun(answer)
        record(api, event("one", "s"))
        last, _, _ = next(events)
    record(api, event("two", "s"), event("three", "s"))
    with watching(http, **{"last-event-id": last}) as answer:
        events = begun(answer)
        assert [next(events)[2]["text"] for _ in range(2)] == ["two", "three"]


@pytest.mark.parametrize("name", ["afterCursor", "after_cursor"])
def test_an_event_source_that_connects_again_goes_on_where_it_was_and_not_where_it_began(
    api: Api, http: Http, name: str
) -> None:
    with watching(http) as answer:
        events = begun(answer)
        record(api, event("zero", "s"), event("one", "s"))
        first, last = (next(events)[0] for _ in range(2))
    record(api, event("two", "s"))
    with watching(http, f"?{name}={first}", **{"last-event-id": last}) as answer:
        assert next(begun(answer))[2]["text"] == "two"


def test_a_watch_that_cannot_begin_is_answered_as_any_call(http: Http) -> None:
    error = http.error("GET", "/api/stream?minSeverity=loud")
    assert (error.http_status, list(error.fields)) == (400, ["minSeverity"])
    broken = http.error("GET", "/api/stream", headers={"last-event-id": "nonsense"})
    assert broken.http_status == 400


def test_a_watch_ends_with_its_time(http: Http) -> None:
    with watching(http, **{"grpc-timeout": "300m"}) as answer:
        answer.read()
    # Where the machine is busy, it may not even have begun.
    assert (answer.status_code, "event: error" in answer.text) in ((200, True), (504, False))
    assert "DEADLINE_EXCEEDED" in answer.text


def test_a_watch_that_is_left_frees_its_seat(api: Api, http: Http, server: LocalServer) -> None:
    streams = server.application._server.streams
    for _ in range(3):
        with watching(http) as answer:
            begun(answer)
    # The next one that opens and ends comes after the others have.
    for _ in range(1_000):
        if not streams.open_streams:
            break
        http.get("/api/lessons")
    assert streams.open_streams == 0


def test_exported_lessons_are_lines_that_an_import_takes(
    api: Api, new_tenant: Callable[[], Api], over_http: Callable[[Api | None], Http], http: Http
) -> None:
    for number in range(3):
        lesson(api, f"title {number}", lesson_id=f"lesson-{number}", context={"n": number})
    lines = http.lines("GET", "/api/exports/lessons")
    assert [one["id"] for one in lines] == ["lesson-0", "lesson-1", "lesson-2"]
    other = over_http(new_tenant())
    (told,) = other.lines("POST", "/api/imports/lessons", lines)
    assert (told["createdCount"], told["lessonIds"]) == (3, [one["id"] for one in lines])
    (again,) = other.lines("POST", "/api/imports/lessons", lines)
    assert again["unchangedCount"] == 3
    assert other.lines("GET", "/api/exports/lessons") == lines


def test_a_line_that_is_wrong_is_named_by_its_number(http: Http) -> None:
    answer = http.client.post(
        "/api/imports/lessons",
        content=b'{"title": "t", "content": "c"}\n\n{"titel": "t"}\n',
        headers={"content-type": "application/x-ndjson"},
    )
    assert answer.status_code == 400
    assert "line 3: there is no field 'titel'" in answer.json()["error"]["message"]


def test_events_are_uploaded_as_lines(api: Api, http: Http) -> None:
    told = http.lines(
        "POST",
        "/api/imports/events",
        [{"event": {"sessionId": "s", "eventType": "message", "text": str(n)}} for n in range(300)],
    )
    assert told[-1]["acknowledgedCount"] == 300
    assert [one.text for one in list_events(api, session_id="s")] == [str(n) for n in range(300)]


def test_an_upload_may_come_in_pieces(api: Api, http: Http) -> None:
    sent = b"".join(
        json.dumps({"memory": {"text": f"memory {n}"}}).encode() + b"\n" for n in range(50)
    )

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(sent), 7):
            yield sent[at : at + 7]

    answer = http.client.post(
        "/api/imports/memories",
        content=pieces(),
        headers={"content-type": "application/x-ndjson"},
    )
    assert json.loads(answer.text.splitlines()[-1])["acknowledgedCount"] == 50


@pytest.mark.parametrize("line", [b"{", b'{"event": {"sessionId": 5}}', b'{"evnt": {}}'])
def test_an_upload_says_which_message_is_wrong(http: Http, line: bytes) -> None:
    good = b'{"event": {"sessionId": "s", "eventType": "message", "text": "t"}}\n'
    answer = http.client.post(
        "/api/imports/events",
        content=good + line,
        headers={"content-type": "application/x-ndjson"},
    )
    error = json.loads(answer.text.splitlines()[-1])["error"]
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["details"][0]["metadata"]["message_index"] == "1"


def test_an_upload_of_another_kind_is_refused(http: Http) -> None:
    assert http.error("POST", "/api/imports/events", {}).http_status == 415
