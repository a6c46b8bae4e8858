"""Connect's protocol, as its clients speak it."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import Api
from support.http import Http
from support.making import event, lesson, record

LESSONS = "/mneme.v1.LearnService"


def test_a_unary_call_has_protobufs_own_json(api: Api, http: Http) -> None:
    lesson(api, "tokens", lesson_id="one")
    answer = http.connect("LearnService/ListLessons", {"filter": {}, "pageSize": 5})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["totalSize"] == "1"  # 64 bits are texts in it.
    assert told["lessons"][0]["importance"] == "IMPORTANCE_NORMAL"
    assert "nextPageToken" not in told


def test_a_unary_call_may_be_binary(api: Api, http: Http) -> None:
    lesson(api, "tokens", lesson_id="one")
    answer = http.client.post(
        f"{LESSONS}/GetLesson",
        content=learn_pb.GetLessonRequest(lesson_id="one").SerializeToString(),
        headers={"content-type": "application/proto"},
    )
    assert learn_pb.GetLessonResponse.FromString(answer.content).lesson.title == "tokens"


def test_an_error_has_connects_form_and_carries_its_details(http: Http) -> None:
    answer = http.connect("LearnService/GetLesson", {"lessonId": "nope"})
    assert answer.status_code == 404
    error = answer.json()
    assert (error["code"], error["message"]) == ("not_found", "there is no lesson 'nope'")
    info = next(one for one in error["details"] if one["type"] == "google.rpc.ErrorInfo")
    value = info["value"]
    assert "=" not in value
    raw = base64.b64decode(value + "=" * (-len(value) % 4))
    assert ErrorInfo.FromString(raw).reason == info["debug"]["reason"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("request_", "status"),
    [({"lessonId": 5}, 400), ({"nope": "x"}, 400), ([], 400), ({"lessonId": ""}, 400)],
)
def test_a_request_that_is_wrong_is_refused(http: Http, request_: Any, status: int) -> None:
    answer = http.connect("LearnService/GetLesson", request_)
    assert (answer.status_code, answer.json()["code"]) == (status, "invalid_argument")


def test_a_call_that_is_given_no_time_is_late(http: Http) -> None:
    answer = http.connect("LearnService/ListLessons", {}, headers={"connect-timeout-ms": "0"})
    assert (answer.status_code, answer.json()["code"]) == (504, "deadline_exceeded")


@pytest.mark.parametrize(
    "headers", [{"connect-timeout-ms": "soon"}, {"connect-protocol-version": "2"}]
)
def test_headers_that_are_wrong_are_refused(http: Http, headers: dict[str, str]) -> None:
    answer = http.connect("LearnService/ListLessons", {}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")


def test_what_a_write_is_answered_with_lets_a_read_be_as_fresh(http: Http) -> None:
    saved = http.connect("LearnService/CreateLesson", {"title": "t", "content": "c"})
    token = saved.headers["trailer-mneme-consistency-token"]
    read = http.connect("LearnService/ListLessons", {}, headers={"mneme-at-least-as-fresh": token})
    assert len(read.json()["lessons"]) == 1


def test_other_methods_and_kinds_are_told_what_there_is(http: Http) -> None:
    path = f"{LESSONS}/GetLesson"
    got = http.ask("GET", path)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    other = http.client.post(path, content=b"x", headers={"content-type": "text/plain"})
    assert (other.status_code, "application/json" in other.headers["accept-post"]) == (415, True)
    assert http.connect("EventService/StreamEvents", {}).status_code == 415
    assert http.connect("LearnService/Nothing", {}).status_code == 404


def messages(raw: bytes) -> list[tuple[int, Any]]:
    found = []
    while raw:
        flags, size = struct.unpack_from(">BI", raw)
        found.append((flags, json.loads(raw[5 : 5 + size])))
        raw = raw[5 + size :]
    return found


def enveloped(request: Any) -> bytes:
    body = json.dumps(request).encode()
    return struct.pack(">BI", 0, len(body)) + body


def stream(http: Http, rpc: str, body: bytes, **headers: str) -> list[tuple[int, Any]]:
    kind = {"content-type": "application/connect+json"}
    answer = http.client.post(f"/mneme.v1.{rpc}", content=body, headers=kind | headers)
    assert answer.status_code == 200
    return messages(answer.content)


def test_json_that_does_not_fit_is_said_with_its_field(http: Http) -> None:
    path = "/mneme.v1.LearnService/GetLesson"
    answer = http.client.post(path, json={"lesonId": "tokens"})
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "the request cannot be read: there is no field 'lesonId'; did you mean 'lessonId'?"
    )
    answer = http.client.post(path, json={"lessonId": 5})
    assert answer.json()["message"].startswith("the request cannot be read: lessonId: ")


def test_a_stream_of_answers_ends_with_how_it_ended(api: Api, http: Http) -> None:
    for number in range(2):
        lesson(api, f"title {number}", lesson_id=f"lesson-{number}")
    *found, (flags, end) = stream(http, "LearnService/ExportLessons", enveloped({}))
    assert [one["lesson"]["id"] for _, one in found] == ["lesson-0", "lesson-1"]
    assert (flags, end) == (2, {})


def test_a_stream_that_fails_says_so_at_its_end(http: Http) -> None:
    ((flags, end),) = stream(http, "LearnService/ExportLessons", enveloped({"filter": 7}))
    assert (flags, end["error"]["code"]) == (2, "invalid_argument")
    ((flags, end),) = stream(http, "LearnService/ExportLessons", b"no envelope")
    assert (flags, end["error"]["code"]) == (2, "invalid_argument")


def test_a_watch_can_be_had_as_a_stream(api: Api, http: Http) -> None:
    record(api, event("one", "s"))
    *seen, (flags, end) = stream(
        http, "EventService/WatchEvents", enveloped({}), **{"connect-timeout-ms": "500"}
    )
    assert all(message["cursor"] for _, message in seen)
    assert (flags, end["error"]["code"]) == (2, "deadline_exceeded")
