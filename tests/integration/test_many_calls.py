"""However many calls a client makes at once, none fails: those that a connection has no room for
wait at the client."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from mneme import AsyncMnemeClient, MnemeClient
from support.making import list_events
from support.server import LocalServer

CALLS = 400


def test_threads_that_call_all_at_once(server: LocalServer) -> None:
    api = server.keys.tenant()
    with (
        MnemeClient(server.address, api_key=api.secret) as client,
        ThreadPoolExecutor(CALLS) as threads,
    ):

        def write(number: int) -> None:
            client.record_events([{"id": f"e{number}", "session_id": "s", "event_type": "message"}])

        list(threads.map(write, range(CALLS)))
    assert len(list_events(api)) == CALLS


def test_tasks_that_call_all_at_once(server: LocalServer) -> None:
    api = server.keys.tenant()

    async def write_all() -> None:
        async with AsyncMnemeClient(server.address, api_key=api.secret) as client:
            await asyncio.gather(
                *(
                    client.record_events(
                        [{"id": f"e{number}", "session_id": "s", "event_type": "message"}]
                    )
                    for number in range(CALLS)
                )
            )

    asyncio.run(write_all())
    assert len(list_events(api)) == CALLS
