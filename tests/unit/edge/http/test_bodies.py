"""How bodies are taken in."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import deque
from typing import Any

import pytest
from mneme_server.common.errors import ResourceExhausted
from mneme_server.edge.http import bodies as taking_bodies
from mneme_server.edge.http.bodies import Bodies, Inflater, TooLarge, TooSlow
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.exchange import Lines
from mneme_server.edge.http.request import Request
from starlette.requests import ClientDisconnect, empty_send
from starlette.types import Receive


def request(receive: Receive, length: int | None = None, *more: tuple[bytes, bytes]) -> Request:
    headers = [(b"transfer-encoding", b"chunked"), *more]
    if length is not None:
        headers = [(b"content-length", str(length).encode()), *more]
    scope = {"type": "http", "method": "POST", "raw_path": b"/", "headers": headers}
    return Request(scope, receive, empty_send)


def sending(*parts: bytes, leaves: bool = False) -> Receive:
    left = deque(parts)

    async def receive() -> dict[str, Any]:
        if left:
            part = left.popleft()
            return {"type": "http.request", "body": part, "more_body": bool(left) or leaves}
        return {"type": "http.disconnect"}

    return receive


def take(
    bodies: Bodies,
    *parts: bytes,
    length: int | None = None,
    leaves: bool = False,
    whose: str = "acme",
) -> bytes:
    return asyncio.run(bodies.take(request(sending(*parts, leaves=leaves), length), whose))


def bodies(largest: int = 10, room: int = 30) -> Bodies:
    return Bodies(largest, room)


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
    full.release(held, "acme")
    assert take(full, b"x" * 10)


def test_a_peer_that_leaves_gives_its_room_back() -> None:
    full = bodies()
    for _ in range(3):
        with pytest.raises(ClientDisconnect):
            take(full, b"x" * 10, leaves=True)
    assert take(full, b"x" * 10)


def test_a_tenant_takes_no_more_room_than_it_leaves_to_others() -> None:
    full = bodies(room=40)
    for whose, size in (("acme", 10), ("acme", 10), ("umbrella", 10)):
        assert take(full, b"x" * size, whose=whose)
    for whose in ("acme", "umbrella"):
        with pytest.raises(ResourceExhausted):
            take(full, b"x", whose=whose)
    assert take(full, b"x" * 5, whose="a third")


def stuck(*parts: bytes, then: bytes, every_s: float) -> Receive:
    """What a peer sends that has all of a body there at once but its end."""
    left = deque(parts)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.sleep(every_s)
        return {"type": "http.request", "body": left.popleft() if left else then, "more_body": True}

    return receive


@pytest.mark.parametrize("then", [b"", b"x"], ids=["with nothing", "with hardly anything"])
def test_a_large_body_that_goes_on_with_next_to_nothing_gives_its_room_back(
    then: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_bodies, "_PACE_S", 0.1)
    taking = bodies(largest=1_000_000, room=2_000_000)
    large = stuck(b"x" * 900_000, then=then, every_s=0.01)
    with pytest.raises(TooSlow):
        asyncio.run(taking.take(request(large), "acme"))
    assert take(taking, b"x" * 1_000_000)


def test_a_large_body_has_ten_seconds_to_grow_by_a_sixth_and_a_minute_in_all() -> None:
    now = [0.0]
    pace = taking_bodies._Pace(lambda: now[0])
    pace.grew_to(65_536)
    assert pace.until == 60  # It takes no room that anybody would miss.
    for size, until in ((100_000, 19), (115_000, 19), (120_000, 37), (1_000_000, 46)):
        now[0] += 9
        pace.grew_to(size)
        assert pace.until == until
    now[0] += 18
    pace.grew_to(2_000_000)
    assert pace.until == 60


def test_a_packed_body_is_too_large_however_little_it_holds() -> None:
    nothing = gzip.compress(b"")
    few, many = (
        request(sending(*[nothing] * count), None, (b"content-encoding", b"gzip"))
        for count in (5, 6)
    )
    taking = bodies(largest=5 * len(nothing), room=10 * len(nothing))
    assert asyncio.run(taking.take(few, "acme")) == b""
    with pytest.raises(TooLarge):
        asyncio.run(taking.take(many, "acme"))


def test_a_body_of_many_empty_parts_is_unpacked_in_time_that_grows_with_its_length() -> None:
    begun = time.perf_counter()
    pieces = list(Inflater().pieces(gzip.compress(b"") * 100_000 + gzip.compress(b"end")))
    assert b"".join(pieces) == b"end"
    assert len(pieces) > 100  # Others get their turn in between.
    assert time.perf_counter() - begun < 5


def lines_of(*parts: bytes, largest: int = 100) -> list[bytes]:
    """Return the lines of a body that comes in parts; an error is the last of them."""

    async def taken() -> list[bytes]:
        lines = Lines(HttpCall([], "http:127.0.0.1:1"), largest)
        await lines.feed(sending(*parts), idle_s=60, too_long=ResourceExhausted("too long"))
        return list(lines)

    return asyncio.run(taken())


def test_lines_are_the_same_however_they_are_cut_into_parts() -> None:
    body = b"one\n\ntwo\nthree\n" + b"four"
    for size in range(1, len(body) + 1):
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        assert lines_of(*parts) == [b"one", b"two", b"three", b"four"]
    assert lines_of(b"one\n") == [b"one"]
    with pytest.raises(ResourceExhausted):
        lines_of(b"x" * 60, b"x" * 60)


def test_lines_that_are_blank_are_not_kept() -> None:
    async def kept() -> int:
        lines = Lines(HttpCall([], "http:127.0.0.1:1"), 100)
        too_long = ResourceExhausted("too long")
        await lines.feed(sending(b"\n \n" * 100_000), idle_s=60, too_long=too_long)
        return lines._lines.qsize()

    assert asyncio.run(kept()) == 1  # The end.


def test_a_line_that_there_is_no_room_for_is_refused() -> None:
    taking = bodies(room=100)
    taking.hold("acme", 40)

    def hold(more: int) -> None:
        taking.hold("acme", more)

    async def taken() -> list[bytes]:
        lines = Lines(HttpCall([], "http:127.0.0.1:1"), 1_000, hold)
        too_long = ResourceExhausted("too long")
        await lines.feed(sending(b"x" * 20, leaves=True), idle_s=60, too_long=too_long)
        return list(lines)

    with pytest.raises(ResourceExhausted, match="too much is being sent"):
        asyncio.run(taken())
    taking.hold("acme", 10)  # What was held of the line is there again.


def test_a_long_line_in_many_parts_is_taken_in_in_time_that_grows_with_its_length() -> None:
    begun = time.perf_counter()
    (line,) = lines_of(*[b"x" * 100] * 100_000, largest=10**8)
    assert len(line) == 10**7
    assert time.perf_counter() - begun < 10
