"""Callers that give up waiting, and clients that are closed while somebody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from mneme import AsyncMnemeClient, MnemeClient, MnemeError
from mneme._core import calling, sync
from mneme._core.aio import AsyncStream
from mneme._core.calling import callable_of
from mneme._core.retry import Attempts
from mneme.errors import CancelledError, ClosedError
from mneme.messages import Event, GetOperationResponse, Operation, WatchEventsResponse
from mneme.types import NewEventFields
from unit.client.scripted import ScriptedServer, failure

EVENT: NewEventFields = {"session_id": "s", "event_type": "message"}


@pytest.fixture
def more(served: ScriptedServer) -> Iterator[threading.Semaphore]:
    """Watching begins, and brings an event each time that this is released."""
    released, calls = threading.Semaphore(0), iter(range(10))

    def watch(request: Any, context: Any) -> Any:
        assert next(calls) == 0, "the watch begins once"
        yield WatchEventsResponse(cursor="0")
        for number in (1, 2):
            released.acquire()
            yield WatchEventsResponse(event=Event(id=f"e{number}"), cursor=str(number))

    served.on("WatchEvents", watch)
    yield released
    for _ in range(2):
        released.release()


async def given_up(waiting: Awaitable[Any]) -> None:
    """Begin to wait, and be cancelled before anything comes."""
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def run(main: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_stream_goes_on_when_who_waited_for_a_message_gave_up(
    served: ScriptedServer, more: threading.Semaphore
) -> None:
    async def main() -> None:
        async with (
            AsyncMnemeClient(served.address) as client,
            client.watch_events() as stream,
        ):
            assert (await anext(stream)).cursor == "0"
            await given_up(anext(stream))
            more.release()
            assert (await anext(stream)).cursor == "1", "what came is for who asks next"
            await given_up(anext(stream))
            await given_up(anext(stream))
            more.release()
            assert [message.cursor async for message in stream] == ["2"]

    run(main)


def test_tasks_that_share_a_stream_get_each_message_once(
    served: ScriptedServer, more: threading.Semaphore
) -> None:
    async def main() -> None:
        async with (
            AsyncMnemeClient(served.address) as client,
            client.watch_events() as stream,
        ):
            for _ in range(2):
                more.release()
            found = await asyncio.gather(*(anext(stream) for _ in range(3)))
            assert [message.cursor for message in found] == ["0", "1", "2"]

    run(main)


def test_a_stream_that_nobody_waits_for_any_more_can_be_closed(
    served: ScriptedServer, more: threading.Semaphore
) -> None:
    async def main() -> None:
        async with AsyncMnemeClient(served.address) as client:
            stream = client.watch_events()
            await anext(stream)
            await given_up(anext(stream))
            await stream.aclose()
            assert [message async for message in stream] == []

    run(main)


@pytest.fixture
def stuck(served: ScriptedServer) -> Iterator[threading.Semaphore]:
    """No call is answered until the test is over; released once for each that came in."""
    came, over = threading.Semaphore(0), threading.Event()

    def wait(request: Any, context: Any) -> Any:
        came.release()
        over.wait()

    for method in ("Recall", "StreamEvents", "WaitOperation"):
        served.on(method, wait)
    yield came
    over.set()


def test_calls_under_way_fail_when_their_client_is_closed_and_cancel_nobody(
    served: ScriptedServer, stuck: threading.Semaphore, more: threading.Semaphore
) -> None:
    async def main() -> None:
        client = AsyncMnemeClient(served.address)
        watch = client.watch_events()
        await anext(watch)
        waiting = [
            asyncio.ensure_future(one)
            for one in (client.recall("q"), anext(watch), anext(client.stream_events([EVENT])))
        ]
        for _ in range(2):
            await asyncio.to_thread(stuck.acquire)
        await client.aclose()
        for failed in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failed, CancelledError), failed
            assert failed.message == "the client was closed"
        assert [message async for message in watch] == []

    run(main)


def test_a_call_under_way_in_another_thread_says_that_its_client_was_closed(
    served: ScriptedServer, stuck: threading.Semaphore
) -> None:
    client = MnemeClient(served.address)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(client.recall, "q")
        stuck.acquire()
        client.close()
        with pytest.raises(CancelledError) as failed:
            waiting.result()
    assert failed.value.message == "the client was closed"


@pytest.mark.usefixtures("stuck")
def test_an_operations_end_is_waited_for_no_longer_than_it_may_take(served: ScriptedServer) -> None:
    """By a server that says nothing, too, and a client without a limit of its own."""
    served.on("GetOperation", GetOperationResponse(operation=Operation(id="o")))
    with MnemeClient(served.address, timeout=None) as client, pytest.raises(TimeoutError):
        client.operation("o").result(timeout=0.1)

    async def main() -> None:
        async with AsyncMnemeClient(served.address, timeout=None) as client:
            operation = await client.operation("o")
            with pytest.raises(TimeoutError):
                await operation.result(timeout=0.1)

    run(main)


def test_who_is_cancelled_is_cancelled_although_the_client_is_closed_too(
    served: ScriptedServer, stuck: threading.Semaphore
) -> None:
    async def main() -> None:
        client = AsyncMnemeClient(served.address)
        waiting = asyncio.ensure_future(client.recall("q"))
        await asyncio.to_thread(stuck.acquire)
        waiting.cancel()
        await client.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(main)


@pytest.fixture
def refused(served: ScriptedServer) -> None:
    """Every call is refused for a moment."""
    served.on(
        "Recall",
        lambda request, context: failure(
            context, "RESOURCE_EXHAUSTED", "full", reason="QUEUE_FULL", retry_after=0.1
        ),
    )


def while_it_pauses(monkeypatch: pytest.MonkeyPatch, close: Callable[[], object]) -> None:
    """Have a client closed when it is about to wait before it sends a call again."""
    pause_after = Attempts.pause_after

    def pause_and_close(self: Attempts, error: MnemeError) -> float | None:
        pause = pause_after(self, error)
        close()
        return pause

    monkeypatch.setattr(Attempts, "pause_after", pause_and_close)


@pytest.mark.usefixtures("refused")
def test_a_client_that_is_closed_before_it_sends_a_call_again_says_so(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = MnemeClient(served.address)
    while_it_pauses(monkeypatch, client.close)
    with pytest.raises(ClosedError):
        client.recall("q")


@pytest.mark.usefixtures("refused")
def test_an_asynchronous_client_that_is_closed_meanwhile_says_so(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        client = AsyncMnemeClient(served.address)
        closing: list[asyncio.Task[None]] = []
        while_it_pauses(monkeypatch, lambda: closing.append(asyncio.create_task(client.aclose())))
        with pytest.raises(ClosedError):
            await client.recall("q")

    run(main)


CALLS: dict[str, Callable[[MnemeClient], Any]] = {
    "one request": lambda client: client.recall("q"),
    "many requests": lambda client: client.stream_events([EVENT]),
    "many answers": lambda client: next(client.export_lessons()),
    "a watch": lambda client: client.watch_events(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_client_that_is_closed_as_a_call_begins_says_so(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch, call: Callable[[MnemeClient], Any]
) -> None:
    client = MnemeClient(served.address)

    def closing(*given: Any) -> Any:
        made = callable_of(*given)
        client.close()
        return made

    monkeypatch.setattr(calling, "callable_of", closing)
    monkeypatch.setattr(sync, "callable_of", closing)
    with pytest.raises(ClosedError):
        call(client)


def test_an_asynchronous_client_that_is_closed_as_a_watch_ends_lets_it_end(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.on("WatchEvents", lambda *_: iter([WatchEventsResponse(cursor="1")]))
    read = AsyncStream._read

    async def main() -> None:
        client = AsyncMnemeClient(served.address)

        async def read_and_close(self: AsyncStream[Any]) -> Any:
            message = await read(self)
            if message is grpc.aio.EOF:
                await client.aclose()
            return message

        monkeypatch.setattr(AsyncStream, "_read", read_and_close)
        assert [message.cursor async for message in client.watch_events()] == ["1"]

    run(main)
