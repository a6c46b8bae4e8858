"""What a request says of itself before anybody serves it."""

from __future__ import annotations

import pytest
from mneme_server.edge.http.request import Request
from starlette.exceptions import HTTPException
from starlette.requests import empty_receive, empty_send


def request(method: str = "GET", **headers: str | list[str]) -> Request:
    given = [
        (name.replace("_", "-").encode(), value.encode())
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    scope = {"type": "http", "method": method, "raw_path": b"/a%2Fb", "headers": given}
    return Request(scope, empty_receive, empty_send)


@pytest.mark.parametrize(
    "given",
    ["", "two\nlines", "x" * 129, "naïve", ["two\nlines", "mine"], ["mine", "two\nlines"]],
)
def test_what_is_logged_of_a_request_is_one_id_on_one_line(given: str | list[str]) -> None:
    asked = request(x_request_id=given)
    (told,) = (value for name, value in asked.headers.items() if name == "x-request-id")
    assert told == asked.request_id
    assert told.isascii()
    assert told.isprintable()
    assert 0 < len(told) <= 128


def test_a_request_keeps_the_id_that_it_came_with() -> None:
    assert request(x_request_id="mine").request_id == "mine"


def test_of_a_header_that_comes_twice_the_last_counts_as_in_the_metadata_of_a_call() -> None:
    asked = request(content_type=["application/json", "text/plain"], x_request_id=["one", "two"])
    assert asked.content_type == "text/plain"
    assert asked.request_id == "two"
    assert dict(asked.metadata)["content-type"] == "text/plain"


def test_a_path_is_what_travelled() -> None:
    assert request().raw_path == "/a%2Fb"


def test_a_request_with_another_method_is_told_which_there_are() -> None:
    request("HEAD").allow("GET", "HEAD")
    with pytest.raises(HTTPException) as refused:
        request("PUT").allow("GET", "HEAD")
    assert refused.value.status_code == 405
    assert refused.value.headers == {"allow": "GET, HEAD"}


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ({}, 0),
        ({"content_length": "12"}, 12),
        ({"transfer_encoding": "chunked"}, None),
        ({"content_length": "²"}, 0),
    ],
)
def test_a_request_says_how_long_its_body_is(headers: dict[str, str], length: int | None) -> None:
    assert request("POST", **headers).body_bytes == length
