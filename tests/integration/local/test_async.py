"""`mneme.local_async`: the same for asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mneme
import pytest
from mneme.errors import ClosedError
from support.folders import kill_server, record_of, servers_of, wait_until


def _event(session_id: str, text: object) -> dict[str, str]:
    return {"session_id": session_id, "event_type": "message", "text": str(text)}


def test_tasks_share_one_start_and_calls_of_all_kinds_survive_the_servers_death(
    folder: Path,
) -> None:
    async def scenario() -> None:
        memory = mneme.local_async(folder)
        events = [_event("s1", n) for n in range(3)]
        await asyncio.gather(*(memory.record_events([event]) for event in events))
        assert servers_of(folder) == [record_of(folder)["pid"]]
        kill_server(folder)
        recorded = await memory.record_all(_event("s1", n) for n in "ab")
        assert recorded.acknowledged_count == 2
        kill_server(folder)
        async with memory.watch_events() as watch:
            following = asyncio.ensure_future(anext(watch))
            other = mneme.local_async(folder)
            while not following.done():
                await other.record_events([_event("s2", "now")])
                await asyncio.wait([following], timeout=0.1)
            assert following.result()
            await other.aclose()
        assert len([e async for e in memory.iter_events(session_id="s1")]) == 5
        await memory.aclose()

    asyncio.run(scenario())


def test_a_client_that_is_closed_while_it_joins_says_so_and_leaves_the_server(folder: Path) -> None:
    async def scenario() -> None:
        memory = mneme.local_async(folder)
        asking = asyncio.ensure_future(memory.recall("q"))
        await asyncio.sleep(0)
        await memory.aclose()
        with pytest.raises(ClosedError):
            await asking
        await asyncio.to_thread(wait_until, lambda: not servers_of(folder), "nobody takes part")

    asyncio.run(scenario())
