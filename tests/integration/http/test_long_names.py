"""Names that are no names, of megabytes: not compared with those that there are, and told back only
at their beginning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.http import Http

LONG = "n" * 3_000_000
LESSON = {"title": "t", "content": "c"}
CONNECT = "/mneme.v1.LearnService/CreateLesson"


def told(http: Http, verb: str, path: str, body: Any) -> str:
    """What a call that is refused says, headers and all."""
    headers = {"content-type": "application/json"}
    answer = http.client.request(verb, path, content=json.dumps(body), headers=headers)
    assert answer.status_code == 400, answer.text[:1_000]
    return str(answer.headers) + answer.text


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("POST", "/api/lessons", {LONG: 1}),
        ("POST", "/api/lessons", {**LESSON, "importance": LONG}),
        ("POST", "/api/lessons", {**LESSON, "lessonId": LONG}),
        ("POST", "/api/lessons", {**LESSON, "tags": {LONG: 1}}),
        ("PUT", "/api/lessons/one", {LONG: 1}),
        ("POST", "/api/recall", {"query": "q", "from": LONG}),
        ("POST", CONNECT, {LONG: 1}),
        ("POST", CONNECT, {"importance": LONG}),
        ("POST", CONNECT, {"title": {LONG: 1}}),
        ("POST", CONNECT, {"context": [LONG]}),
        ("POST", "/mneme.v1.RecallService/Recall", {"query": "q", "filter": {LONG: 1}}),
        ("POST", "/mneme.v1.EventService/RecordEvents", {"events": [{LONG: 1}]}),
    ],
)  # fmt: skip
def test_a_name_of_megabytes_is_told_back_short(
    http: Http, verb: str, path: str, body: Any
) -> None:
    assert len(told(http, verb, path, body)) < 8_000


@pytest.mark.parametrize("path", ["/api/lessons", CONNECT])
def test_a_long_name_with_very_much_in_it_is_refused(http: Http, path: str) -> None:
    """Whoever reads it would make the path of each thing in it: a terabyte of them."""
    inside = {str(number): number for number in range(100_000)}
    body = {**LESSON, "context": {"n" * 9_000_000: inside}}
    assert "names that are too long" in told(http, "POST", path, body)


def test_paths_and_parameters_are_told_back_short(http: Http) -> None:
    long = "n" * 30_000
    for path in (f"/api/{long}", f"/api/lessons?{long}=1", f"/mneme.v1.{long}/Call"):
        answer = http.ask("GET", path)
        assert answer.status_code in (400, 404)
        assert len(answer.text) < 4_000
