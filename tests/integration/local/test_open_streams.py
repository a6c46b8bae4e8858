"""A folder's participants watch on connections of their own, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mneme
import pytest
from support.connections import connections_to
from support.folders import kill_server, record_of, wait_until

pytestmark = pytest.mark.slow

WATCHES = 40
"""More than the 32 calls that the server takes on one connection."""
SAID = {"session_id": "s", "event_type": "message", "text": "still served"}


@pytest.fixture(autouse=True)
def _seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant gets half."""
    monkeypatch.setenv("MNEME_MAX_STREAMS", f"{2 * WATCHES}")
    monkeypatch.setenv("MNEME_WORKERS", f"{4 * WATCHES}")


def test_a_participant_s_calls_do_not_wait_for_its_watches(folder: Path) -> None:
    with mneme.local(folder) as memory:
        address = memory.address
        watches = [memory.watch_events(timeout=60) for _ in range(WATCHES)]
        for watch in watches:
            next(watch)
        assert connections_to(address) == WATCHES + 1
        memory.record_events([SAID], timeout=20)
        assert [next(watch).event.text for watch in watches] == ["still served"] * WATCHES
        for watch in watches[1:]:
            watch.close()
        wait_until(lambda: connections_to(address) == 2, "ended watches freed their connections")
    wait_until(lambda: connections_to(address) == 0, "closing freed all others")


def test_an_async_participant_s_calls_do_not_wait_for_its_watches(folder: Path) -> None:
    async def scenario() -> None:
        async with mneme.local_async(folder) as memory:
            address = memory.address
            watches = [memory.watch_events(timeout=60) for _ in range(WATCHES)]
            await asyncio.gather(*(anext(watch) for watch in watches))
            assert connections_to(address) == WATCHES + 1
            await memory.record_events([SAID], timeout=20)
            seen = await asyncio.gather(*(anext(watch) for watch in watches))
            assert [message.event.text for message in seen] == ["still served"] * WATCHES
            for watch in watches[1:]:
                await watch.aclose()
            ended = "ended watches freed their connections"
            await asyncio.to_thread(wait_until, lambda: connections_to(address) == 2, ended)
        await asyncio.to_thread(wait_until, lambda: connections_to(address) == 0, "all are freed")

    asyncio.run(scenario())


def test_a_watch_goes_on_with_the_server_that_replaced_a_killed_one(folder: Path) -> None:
    with mneme.local(folder) as memory, mneme.local(folder) as other:
        with memory.watch_events(timeout=60) as watch:
            next(watch)
            killed = record_of(folder)["pid"]
            kill_server(folder)
            other.record_events([SAID])
            assert next(watch).event.text == "still served"
        assert record_of(folder)["pid"] != killed
