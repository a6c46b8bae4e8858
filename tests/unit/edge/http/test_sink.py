"""What a thread sends of an answer while the server stops: its peer is gone, no more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.exchange import Gone, Sink
from starlette.types import Message


class Loop:
    """An event loop in a thread of its own, with a sink whose peer never takes anything."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._begun = threading.Event()
        self.sending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._begun.wait(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._make())
        self._loop.call_soon(self._begun.set)  # Whoever stops it before it runs stops nothing.
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _make(self) -> None:
        async def nobody_takes_it(_event: Message) -> None:
            self.sending.set()
            await asyncio.Event().wait()

        async def begin() -> None:
            pass

        self.sink = Sink(nobody_takes_it, begin, lambda: None, HttpCall([], "http:127.0.0.1:1"))

    def stop(self) -> None:
        """Stop as the server's loop does: what is left is cancelled, then the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.stop()


def test_a_part_that_nobody_takes_as_the_server_stops_has_a_peer_that_is_gone(loop: Loop) -> None:
    raised: list[BaseException] = []

    def put() -> None:
        try:
            loop.sink.put(b"part")
        except BaseException as error:
            raised.append(error)

    sender = threading.Thread(target=put)
    sender.start()
    assert loop.sending.wait(60)
    loop.stop()
    sender.join(60)
    assert [type(error) for error in raised] == [Gone]


@pytest.mark.filterwarnings("error")
def test_a_part_that_comes_when_the_server_has_stopped_has_a_peer_that_is_gone(loop: Loop) -> None:
    loop.stop()
    with pytest.raises(Gone):
        loop.sink.put(b"part")


def test_a_part_that_comes_just_before_the_servers_loop_is_closed_has_a_peer_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, scheduled, gone = asyncio.new_event_loop(), threading.Event(), threading.Event()

    async def nobody_is_there(*_event: Message) -> None:
        raise AssertionError("the loop runs no more")

    async def make() -> Sink:
        call = HttpCall([], "http:127.0.0.1:1")
        return Sink(nobody_is_there, nobody_is_there, lambda: None, call)

    sink, schedule = loop.run_until_complete(make()), loop.call_soon_threadsafe

    def noted(*arguments: Any) -> asyncio.Handle:
        try:
            return schedule(*arguments)
        finally:
            scheduled.set()

    def put() -> None:
        with pytest.raises(Gone):
            sink.put(b"part")
        gone.set()

    monkeypatch.setattr(loop, "call_soon_threadsafe", noted)
    threading.Thread(target=put, daemon=True).start()
    assert scheduled.wait(60)
    loop.close()
    assert gone.wait(60)
