"""What goes wrong over HTTP is told with the status, the reason and the field."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest
from mneme.v1 import auth_pb2
from support.api import Api, refused
from support.http import Http
from support.making import lesson
from support.server import LocalServer

LESSON = {"title": "t", "content": "c"}


def test_without_a_key_nobody_is_served_but_health_is_told(
    over_http: Callable[[Api | None], Http],
) -> None:
    http = over_http(None)
    assert http.get("/api/health") == {"status": "serving"}
    for verb, path in (("GET", "/api/lessons"), ("POST", "/api/lessons"), ("GET", "/api/stream")):
        error = http.error(verb, path, None if verb == "GET" else LESSON)
        assert (error.http_status, error.reason) == (401, "API_KEY_MISSING")
        assert error.answer.headers["www-authenticate"] == "Bearer"


def test_a_key_that_opens_nothing_is_told_apart_from_none(server: LocalServer) -> None:
    error = Http(server.http_address, "mn_nobody-has-this-key").error("GET", "/api/lessons")
    assert (error.http_status, error.reason) == (401, "API_KEY_INVALID")


@pytest.mark.parametrize(
    "path", ["/api/lessons", "/mneme.v1.LearnService/CreateLesson", "/v1/traces", "/v1/logs"]
)
@pytest.mark.parametrize("other", ["the same", "mn_nobody-has-this-key", ""])
def test_two_authorizations_are_refused_also_where_they_agree(
    api: Api, http: Http, path: str, other: str
) -> None:
    """What stands between may have looked at another of them than the server would."""
    first = f"Bearer {api.secret}"
    second = first if other == "the same" else other and f"Bearer {other}"
    for sent in ([first, second], [second, first]):
        headers = [("content-type", "application/json"), *(("Authorization", one) for one in sent)]
        with httpx2.Client(base_url=http.address, verify=False) as client:
            answer = client.post(path, json={"title": "t", "content": "c"}, headers=headers)
        assert answer.status_code == 401
        assert "more than one authorization" in answer.text
    assert http.get("/api/lessons")["total"] == 0


def test_an_error_is_the_same_as_over_grpc(api: Api, http: Http) -> None:
    error = http.error("GET", "/api/lessons/nope", headers={"x-request-id": "mine"})
    with refused() as failure:
        api.call("mneme.v1.LearnService/GetLesson", b"\n\x04nope")
    assert (error.http_status, error.status) == (404, "NOT_FOUND")
    assert (error.reason, error.message) == (failure.reason, failure.message)
    assert error.fields == failure.fields
    assert error.metadata["request_id"] == "mine"
    assert error.answer.headers["x-request-id"] == "mine"


def test_the_same_id_with_other_content_conflicts(http: Http) -> None:
    http("POST", "/api/lessons", LESSON | {"lessonId": "one"})
    error = http.error("POST", "/api/lessons", {"title": "x", "content": "y", "lessonId": "one"})
    assert (error.http_status, error.status) == (409, "ALREADY_EXISTS")


def test_a_key_over_its_limit_is_told_when_to_try_again(server: LocalServer, api: Api) -> None:
    key = server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ, rate_limit=1)
    http = Http(server.http_address, key.secret)
    http.get("/api/lessons")
    error = http.error("GET", "/api/lessons")
    assert (error.http_status, error.reason) == (429, "RATE_LIMITED")
    assert 0 < int(error.answer.headers["retry-after"]) <= 60


@pytest.mark.parametrize(
    ("query", "field", "reason"),
    [
        ("query=a&foo=1", "foo", "INVALID_PARAMETER"),
        ("query=a&limit=x", "limit", "INVALID_TYPE"),
        ("query=a&limit=1.5", "limit", "INVALID_TYPE"),
        ("query=a&limit=99999999999", "limit", "OUT_OF_RANGE"),
        ("query=a&limit=100000", "limit", "OUT_OF_RANGE"),
        ("query=a&limit=1&limit=2", "limit", "INVALID_PARAMETER"),
        ("query=a&minScore=high", "minScore", "INVALID_TYPE"),
        ("query=a&from=yesterday", "from", "INVALID_TYPE"),
        ("query=a&explain=maybe", "explain", "INVALID_TYPE"),
        ("query=a&mode=psychic", "mode", "INVALID_PARAMETER"),
        ("query=a&weights=7", "weights", "INVALID_TYPE"),
        ("query=a&from=2026-01-01T00:00:00Z&startTime=2026-01-01T00:00:00Z", "startTime", ""),
        ("scope=events", "query", "MISSING_REQUIRED_FIELD"),
    ],
)
def test_a_wrong_parameter_is_named(http: Http, query: str, field: str, reason: str) -> None:
    error = http.error("GET", f"/api/recall?{query}")
    assert error.http_status == 400
    assert list(error.fields) == [field]
    assert error.reason == (reason or "INVALID_PARAMETER")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b'{"title": 5, "content": "c"}', "title: 5 is not a text"),
        (b'{"title": "t", "content": "c", "tags": "x"}', "tags: .* is not a list"),
        (b'{"title": "t", "content": "c", "context": []}', "context: .* is not an object"),
        (b'{"title": "t", "content": "\\ud800"}', "not JSON"),
        (b'{"title": "t", "content": "c\\u0000"}', "content"),
        (b"\xff\xfe", "not JSON"),
        (b'{"title": "t", "content": "c", "context": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
         "nested more than 32 levels deep"),
        (b'{"context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
        (b'{"titel": "t"}', "there is no parameter 'titel'; did you mean title"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused_in_words(http: Http, body: bytes, words: str) -> None:
    answer = http.client.post(
        "/api/lessons", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    message = answer.json()["error"]["message"]
    assert re.search(words, message), message


def test_a_body_of_another_kind_is_refused(http: Http) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = http.client.post("/api/lessons", content=b"{}", headers={"content-type": kind})
        assert answer.status_code == 415


def test_parameters_belong_where_the_route_has_them(http: Http) -> None:
    error = http.error("POST", "/api/lessons?title=x", LESSON)
    assert (error.http_status, list(error.fields)) == (400, ["title"])
    assert http.error("DELETE", "/api/lessons/one", {}).http_status == 400


def test_other_paths_and_verbs_are_told_what_there_is(http: Http) -> None:
    assert http.error("GET", "/api/nothing").http_status == 404
    assert http.error("GET", "/mneme.v1.LearnService/Nothing").http_status == 404
    assert http.error("POST", "/").http_status == 404
    error = http.error("DELETE", "/api/lessons")
    assert (error.http_status, error.answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert http.error("POST", "/api/health").http_status == 405
    head = http.ask("HEAD", "/api/lessons")
    assert (head.status_code, head.content) == (200, b"")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: LocalServer) -> None:
    http = Http(server.http_address, server.keys.admin.secret)
    largest = 16 * 1024 * 1024
    host = urlsplit(server.http_address)
    with socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as peer:
        peer.sendall(
            b"POST /api/lessons HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer " + str(server.keys.admin.secret).encode() + b"\r\n"
            b"content-length: " + str(largest + 1).encode() + b"\r\n\r\n{"
        )
        assert peer.recv(1000).startswith(b"HTTP/1.1 413")
    assert http.get("/api/health")


def test_a_head_that_is_too_long_ends_the_connection(server: LocalServer) -> None:
    host = urlsplit(server.http_address)
    said = b""
    with (
        socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as peer,
        suppress(OSError),  # The server may be the first to close.
    ):
        peer.sendall(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 200_000)
        while part := peer.recv(1000):
            said += part
    assert said == b"" or said.startswith(b"HTTP/1.1 431")
    assert Http(server.http_address).get("/api/health")


@pytest.mark.parametrize("timeout", ["1", "x", "1000000000S", "5s"])
def test_a_timeout_that_is_none_is_refused(http: Http, timeout: str) -> None:
    error = http.error("GET", "/api/lessons", headers={"grpc-timeout": timeout})
    assert (error.http_status, list(error.fields)) == (400, ["Grpc-Timeout"])


def test_a_call_that_is_given_no_time_is_late(http: Http) -> None:
    error = http.error("GET", "/api/lessons", headers={"grpc-timeout": "1n"})
    assert (error.http_status, error.status) == (504, "DEADLINE_EXCEEDED")


def test_another_tenants_lesson_looks_like_none(
    new_tenant: Callable[[], Api], over_http: Callable[[Api | None], Http]
) -> None:
    ours, theirs = new_tenant(), new_tenant()
    lesson(theirs, "secret", lesson_id="theirs")
    http = over_http(ours)
    other, none = (http.error("GET", f"/api/lessons/{one}") for one in ("theirs", "absent"))
    assert (other.http_status, other.reason) == (none.http_status, none.reason)
    assert other.message.replace("theirs", "absent") == none.message
    assert http.error("PUT", "/api/lessons/theirs", {"title": "x"}).http_status == 404
    assert http.error("DELETE", "/api/lessons/theirs").http_status == 404
    assert http.get("/api/recall?query=secret")["results"] == []
    assert http.get("/api/lessons")["total"] == 0
    assert http.lines("GET", "/api/exports/lessons") == []
    error = http.error("GET", f"/api/stats?tenantId={theirs.tenant_id}")
    assert error.http_status == 403
