"""How bodies are taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mneme_server.common.errors import ResourceExhausted
from mneme_server.http.request import Bodies, Left, Request, TooLarge

Receive = Callable[[], Awaitable[dict[str, Any]]]


def request(length: int | None = None) -> Request:
    headers = [(b"transfer-encoding", b"chunked")]
    if length is not None:
        headers = [(b"content-length", str(length).encode())]
    return Request(
        {
            "method": "POST", "raw_path": b"/", "query_string": b"", "client": None,
            "headers": headers,
        }
    )  # fmt: skip


def sending(*parts: bytes, leaves: bool = False) -> Receive:
    left = list(parts)

    async def receive() -> dict[str, Any]:
        if left:
            part = left.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(left) or leaves}
        return {"type": "http.disconnect"}

    return receive


def take(bodies: Bodies, *parts: bytes, length: int | None = None, leaves: bool = False) -> bytes:
    return asyncio.run(bodies.take(request(length), sending(*parts, leaves=leaves)))


def bodies(largest: int = 10, room: int = 15) -> Bodies:
    return Bodies(largest, room, auth_required=False)


def test_a_body_is_put_together_from_its_parts() -> None:
    assert take(bodies(), b"one", b"", b"two") == b"onetwo"


@pytest.mark.parametrize("length", [11, None])
def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(length: int | None) -> None:
    with pytest.raises(TooLarge):
        take(bodies(), b"x" * 6, b"x" * 5, length=length)


def test_bodies_are_taken_in_as_far_as_there_is_room() -> None:
    full = bodies()
    held = take(full, b"x" * 10)
    for _ in range(3):  # A refusal leaves as much room as there was.
        with pytest.raises(ResourceExhausted):
            take(full, b"x" * 3, b"x" * 3)
    assert take(full, b"x" * 5)
    full.release(held)
    assert take(full, b"x" * 10)


def test_a_peer_that_leaves_gives_its_room_back() -> None:
    full = bodies()
    for _ in range(3):
        with pytest.raises(Left):
            take(full, b"x" * 10, leaves=True)
    assert take(full, b"x" * 10)
