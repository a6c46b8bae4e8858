"""An asyncio client, and each of its streams, belongs to one event loop, and says so in another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from mneme import AsyncMnemeClient, errors
from unit.client.scripted import ScriptedServer

Use = Callable[[AsyncMnemeClient], Awaitable[object]]


async def _watch(client: AsyncMnemeClient) -> None:
    async with client.watch_events() as events:
        async for _ in events:
            pass


async def _write(client: AsyncMnemeClient) -> None:
    await client.record_events([{"session_id": "s", "event_type": "message"}])


USES: dict[str, Use] = {
    "reads": lambda client: client.recall("q"),
    "writes": _write,
    "watches": _watch,
    "closes": lambda client: client.aclose(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_client_used_in_two_loops_says_what_to_do(use: Use, served: ScriptedServer) -> None:
    client = AsyncMnemeClient(served.address)

    async def begin() -> None:
        await client.recall("q")

    async def go_on() -> None:
        with pytest.raises(errors.OtherLoopError, match="make a client in each loop"):
            await asyncio.wait_for(_of(use(client)), 20)

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(begin())
        asyncio.run(go_on())
        loop.run_until_complete(client.aclose())
    finally:
        loop.close()


def test_a_client_goes_on_in_its_own_loop(served: ScriptedServer) -> None:
    client = AsyncMnemeClient(served.address)
    with asyncio.Runner() as runner:
        for use in USES.values():
            runner.run(_of(use(client)))


async def _of(awaitable: Awaitable[object]) -> object:
    return await awaitable
