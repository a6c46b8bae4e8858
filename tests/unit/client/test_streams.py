"""Streams in both directions."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from itertools import count as count_from
from typing import Any

import grpc
import pytest
from mneme import AsyncMnemeClient, MnemeClient, errors
from mneme.messages import (
    Event,
    ExportLessonsResponse,
    NewEvent,
    StreamEventsResponse,
    WatchEventsResponse,
)
from unit.client.scripted import EitherClient, ScriptedServer, failure


def ticking(served: ScriptedServer) -> None:
    """Watching never ends by itself."""

    def watch(request: Any, context: Any) -> Any:
        number = 0
        while context.is_active():
            number += 1
            yield WatchEventsResponse(event=Event(id=f"e{number}"), cursor=str(number))
            served.ended.wait(0.01)

    served.on("WatchEvents", watch)


def count(served: ScriptedServer) -> None:
    served.on(
        "StreamEvents",
        lambda requests, context: [StreamEventsResponse(recorded_count=len(requests))],
    )


def test_a_stream_hands_out_messages_as_they_come(
    client: EitherClient, served: ScriptedServer
) -> None:
    ticking(served)
    messages = client.call("watch_events", take=3, session_id="s")
    assert [message.event.id for message in messages] == ["e1", "e2", "e3"]
    assert served.last("WatchEvents").session_id == "s"


def test_leaving_the_block_ends_the_stream_on_the_server(served: ScriptedServer) -> None:
    ticking(served)
    with MnemeClient(served.address) as client:
        with client.watch_events() as messages:
            next(messages)
        assert served.ended.wait(10)
        assert list(messages) == []


def test_leaving_the_async_block_ends_the_stream_on_the_server(served: ScriptedServer) -> None:
    ticking(served)

    async def main() -> None:
        async with AsyncMnemeClient(served.address) as client:
            async with client.watch_events() as messages:
                await anext(messages)
            assert await asyncio.to_thread(served.ended.wait, 10)
            assert [m async for m in messages] == []

    asyncio.run(main())


def test_an_async_stream_that_is_dropped_ends_on_the_server_and_takes_its_connection_along(
    served: ScriptedServer,
) -> None:
    ticking(served)

    async def main() -> None:
        async with AsyncMnemeClient(served.address) as client:
            own = None
            stream: Any = client.watch_events()
            async for _ in stream:
                own = stream._own
                break
            del stream
            gc.collect()
            assert await asyncio.to_thread(served.ended.wait, 10)
            while own.get_state() is not grpc.ChannelConnectivity.SHUTDOWN:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_stream_has_no_deadline_unless_the_call_gives_one(
    client: EitherClient, served: ScriptedServer
) -> None:
    ticking(served)
    client.call("watch_events", take=1)
    client.call("watch_events", take=1, timeout=60)
    without, given = (call.seconds_left for call in served.calls("WatchEvents"))
    assert without is None or without > 10**6
    assert given is not None
    assert 0 < given < 120


def test_a_stream_that_fails_raises_the_typed_error_after_its_messages(
    client: EitherClient, served: ScriptedServer
) -> None:
    def watch(request: Any, context: Any) -> Any:
        yield WatchEventsResponse(cursor="1")
        failure(context, "NOT_FOUND", "there is no tenant acme")

    served.on("WatchEvents", watch)
    with pytest.raises(errors.NotFoundError, match="no tenant acme"):
        client.call("watch_events")


BREAKS: list[Callable[[Any], None]] = [
    lambda context: failure(
        context, "UNAVAILABLE", "shutting down", reason="INITIALIZATION_FAILED", retry_after=0.01
    ),
    lambda context: context.abort(grpc.StatusCode.CANCELLED, "cut off"),
    lambda context: failure(
        context, "RESOURCE_EXHAUSTED", "full", reason="TOO_MANY_STREAMS", retry_after=0.01
    ),
]


def breaking(served: ScriptedServer, break_off: Callable[[Any], None]) -> None:
    """Watching brings two events, breaks off, is refused once, and goes on."""
    calls = count_from(1)

    def watch(request: Any, context: Any) -> Any:
        if next(calls) % 2 == 0:
            break_off(context)
        first = int(request.after_cursor or 0)
        yield WatchEventsResponse(cursor=str(first))
        for number in (first + 1, first + 2):
            yield WatchEventsResponse(event=Event(id=f"e{number}"), cursor=str(number))
        break_off(context)

    served.on("WatchEvents", watch)


@pytest.mark.parametrize("break_off", BREAKS)
def test_a_watch_that_breaks_off_goes_on_after_its_last_message(
    client: EitherClient, served: ScriptedServer, break_off: Callable[[Any], None]
) -> None:
    breaking(served, break_off)
    messages = client.call("watch_events", take=7, agent_id="a")
    assert ["event" in message for message in messages] == [False] + [True] * 6
    assert [message.event.id for message in messages[1:]] == [f"e{n}" for n in range(1, 7)]
    asked = [(seen.request.after_cursor, seen.request.agent_id) for seen in served.seen]
    assert asked == [(after, "a") for after in ("", "2", "2", "4", "4")]


@pytest.mark.parametrize("method", ["watch_events", "export_lessons"])
def test_a_stream_that_is_refused_for_a_moment_begins_after_that_moment(
    client: EitherClient, served: ScriptedServer, method: str
) -> None:
    refusals = iter([("RESOURCE_EXHAUSTED", 0.01), ("UNAVAILABLE", 0.01), ("UNAVAILABLE", None)])
    message = WatchEventsResponse() if method == "watch_events" else ExportLessonsResponse()

    def answer(request: Any, context: Any) -> Any:
        code, retry_after = next(refusals, ("", None))
        if code:
            failure(context, code, "full", retry_after=retry_after)
        yield message

    for name in ("WatchEvents", "ExportLessons"):
        served.on(name, answer)
    assert len(client.call(method, take=1)) == 1
    assert len(served.seen) == 4


def test_a_watch_is_not_resumed_that_never_began_nor_by_a_client_without_retries(
    connect: Callable[..., EitherClient], served: ScriptedServer
) -> None:
    breaking(served, BREAKS[0])
    with pytest.raises(errors.UnavailableError):
        connect(retries=0).call("watch_events")
    assert len(served.seen) == 1
    served.on("WatchEvents", lambda request, context: BREAKS[0](context))
    with pytest.raises(errors.UnavailableError):
        connect(retries=1).call("watch_events")
    assert len(served.seen) == 3


def test_a_watch_that_cannot_be_resumed_is_given_up_as_a_call_would_be(
    connect: Callable[..., EitherClient], served: ScriptedServer
) -> None:
    def watch(request: Any, context: Any) -> Any:
        if not request.after_cursor:
            yield WatchEventsResponse(cursor="1")
        BREAKS[0](context)

    served.on("WatchEvents", watch)
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        connect(timeout=0.5).call("watch_events")
    assert len(served.seen) > 1


def test_a_watch_that_waits_to_be_resumed_can_be_closed(served: ScriptedServer) -> None:
    refused = threading.Event()

    def watch(request: Any, context: Any) -> Any:
        if request.after_cursor:
            refused.set()
            failure(context, "UNAVAILABLE", "busy", reason="TRANSACTION_FAILED", retry_after=20)
        yield WatchEventsResponse(cursor="1")
        BREAKS[0](context)

    served.on("WatchEvents", watch)
    with MnemeClient(served.address, timeout=60) as client, client.watch_events() as stream:
        next(stream)
        found: list[Any] = []
        reading = threading.Thread(target=lambda: found.extend(stream))
        reading.start()
        assert refused.wait(20)
        stream.close()
        reading.join(20)
        assert not reading.is_alive()
        assert found == []


def test_items_of_a_stream_may_be_mappings_messages_or_whole_requests(
    client: EitherClient, served: ScriptedServer
) -> None:
    from mneme.messages import StreamEventsRequest

    count(served)
    items = [
        {"session_id": "s", "event_type": "message"},
        NewEvent(session_id="s"),
        StreamEventsRequest(event=NewEvent(session_id="s")),
    ]
    assert client.call("stream_events", iter(items))[-1].recorded_count == 3
    sent = served.last("StreamEvents")
    assert [request.event.session_id for request in sent] == ["s", "s", "s"]
    assert all(request.event.id for request in sent)


def test_the_async_client_takes_items_from_an_async_iterator(served: ScriptedServer) -> None:
    count(served)

    async def items() -> AsyncIterator[dict[str, str]]:
        for _ in range(4):
            yield {"session_id": "s"}

    async def main() -> int:
        async with AsyncMnemeClient(served.address) as client:
            return [answer.recorded_count async for answer in client.stream_events(items())][-1]

    assert asyncio.run(main()) == 4


def test_an_item_that_does_not_fit_is_raised_to_the_caller_as_it_is(
    client: EitherClient, served: ScriptedServer
) -> None:
    count(served)
    with pytest.raises(TypeError, match=r"event\.session_id: expected text, got int"):
        client.call("stream_events", [{"session_id": "s"}, {"session_id": 5}])


def test_an_error_in_the_caller_s_own_iterator_reaches_the_caller(
    client: EitherClient, served: ScriptedServer
) -> None:
    def items() -> Any:
        yield {"session_id": "s"}
        raise OSError("the disk is gone")

    count(served)
    with pytest.raises(OSError, match="the disk is gone"):
        client.call("stream_events", items())


def test_a_stream_of_events_that_fails_says_how_many_are_safe(
    client: EitherClient, served: ScriptedServer
) -> None:
    served.on(
        "StreamEvents",
        lambda requests, context: failure(
            context,
            "RESOURCE_EXHAUSTED",
            "queue full",
            reason="QUEUE_FULL",
            retry_after=1,
            metadata={"recorded": "500"},
        ),
    )
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        client.call("stream_events", [{"session_id": "s"}])
    assert caught.value.metadata["recorded"] == "500"


def test_a_server_that_refuses_before_reading_all_items_is_heard(
    client: EitherClient, served: ScriptedServer
) -> None:
    def refuse(requests: Any, context: Any) -> None:
        failure(context, "UNAUTHENTICATED", "no key", reason="API_KEY_MISSING")

    served.on("StreamEvents", refuse)
    items = ({"session_id": "s", "text": "x" * 1000} for _ in range(2000))
    with pytest.raises(errors.UnauthenticatedError):
        client.call("stream_events", items)
