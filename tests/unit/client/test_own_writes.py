"""A client's reads show what it wrote: its newest token goes along with every call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme._core.freshness import Freshness
from mneme.messages import RecallResponse, RecordEventsResponse, StreamEventsResponse
from unit.client.scripted import ScriptedServer

FRESH = "mneme-at-least-as-fresh"
ONE, TWO = (f"{7:016x}-{n:012x}-{5:016x}" for n in (1, 2))
OTHER = f"{8:016x}-{1:012x}-{5:016x}"
EVENT = {"session_id": "s", "event_type": "message", "text": "a heron"}


def answers_with(served: ScriptedServer, method: str, *trailer: tuple[str, str]) -> None:
    def answer(request: Any, context: Any) -> Any:
        context.set_trailing_metadata(trailer)
        return RecordEventsResponse() if method == "RecordEvents" else RecallResponse()

    def stream(requests: Any, context: Any) -> Any:
        context.set_trailing_metadata(trailer)
        return [StreamEventsResponse(recorded_count=len(requests))]

    served.on(method, stream if method == "StreamEvents" else answer)


def asked(served: ScriptedServer, method: str) -> list[str | None]:
    return [call.metadata.get(FRESH) for call in served.calls(method)]


def test_a_read_carries_the_token_of_the_last_write(served: ScriptedServer) -> None:
    answers_with(served, "RecordEvents", ("mneme-consistency-token", ONE))
    with MnemeClient(served.address) as client:
        client.recall("heron")
        client.record_events([EVENT])
        client.recall("heron")
        assert client.consistency_token == ONE
    assert asked(served, "Recall") == [None, ONE]


def test_an_asynchronous_read_does_too_and_a_stream_ends_with_a_token(
    served: ScriptedServer,
) -> None:
    answers_with(served, "RecordEvents", ("mneme-consistency-token", ONE))
    answers_with(served, "StreamEvents", ("mneme-consistency-token", TWO))

    async def main() -> None:
        async with AsyncMnemeClient(served.address) as client:
            await client.record_events([EVENT])
            await client.recall("heron")
            async for _ in client.stream_events([EVENT]):
                pass
            await client.recall("heron")

    asyncio.run(main())
    assert asked(served, "Recall") == [ONE, TWO]


def test_a_stream_of_writes_ends_with_a_token(served: ScriptedServer) -> None:
    answers_with(served, "StreamEvents", ("mneme-consistency-token", TWO))
    with MnemeClient(served.address) as client:
        assert len(list(client.stream_events([EVENT]))) == 1
        assert client.consistency_token == TWO


def test_a_token_whose_state_is_lost_is_dropped(served: ScriptedServer) -> None:
    answers_with(served, "Recall", (FRESH, "newest"))
    with MnemeClient(served.address) as client:
        client.consistency_token = ONE
        client.recall("heron")
        client.recall("heron")
    assert asked(served, "Recall") == [ONE, None]


def test_a_token_that_an_asynchronous_stream_was_opened_with_is_dropped_when_it_is_lost(
    served: ScriptedServer,
) -> None:
    answers_with(served, "StreamEvents", (FRESH, "newest"))

    async def main() -> str:
        async with AsyncMnemeClient(served.address) as client:
            stream = client.stream_events([EVENT])
            client.consistency_token = ONE  # It is opened by whoever reads it first.
            assert [answer.recorded_count async for answer in stream] == [1]
            return client.consistency_token

    assert asyncio.run(main()) == ""
    assert asked(served, "StreamEvents") == [ONE]


def test_a_client_may_be_told_to_read_whatever_there_is(served: ScriptedServer) -> None:
    answers_with(served, "RecordEvents", ("mneme-consistency-token", ONE))
    with MnemeClient(served.address, read_own_writes=False) as client:
        client.record_events([EVENT])
        client.recall("heron")
        assert client.consistency_token == ONE, "for others to read what was written here"
    assert asked(served, "Recall") == [None]


@pytest.mark.parametrize(
    ("told", "kept"), [([ONE, TWO], TWO), ([TWO, ONE], TWO), ([TWO, OTHER], OTHER)]
)
def test_the_newest_of_tokens_that_come_in_any_order_is_kept(told: list[str], kept: str) -> None:
    freshness = Freshness(sent=True)
    for token in told:
        freshness.note([("mneme-consistency-token", token)], "")
    assert freshness.token == kept


def test_a_token_that_came_meanwhile_is_not_dropped_for_an_older_one() -> None:
    freshness = Freshness(sent=True)
    freshness.token = TWO
    freshness.note([(FRESH, "newest")], asked=ONE)
    assert freshness.token == TWO
