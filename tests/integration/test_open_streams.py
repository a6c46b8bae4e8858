"""Clients with more streams open than one connection takes: those have connections of their own."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient, errors
from support.connections import connections_to
from support.folders import wait_until
from support.server import LocalServer, local_server

pytestmark = pytest.mark.slow

WATCHES = 40
"""More than the 32 calls that the server takes on one connection."""
SAID = {"session_id": "s", "event_type": "message", "text": "still served"}


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with seats for all of them; a tenant gets half."""
    data = tmp_path_factory.mktemp("roomy") / "data"
    with local_server(data, max_streams=3 * WATCHES, workers=5 * WATCHES) as server:
        yield server


@pytest.fixture
def options(roomy: LocalServer) -> dict[str, Any]:
    """A client's options, of a new tenant."""
    return {"address": roomy.address, "api_key": roomy.keys.tenant().secret, "timeout": 20}


@pytest.fixture
def connected(roomy: LocalServer, options: dict[str, Any]) -> Callable[[], int]:
    """Counts the connections that the test has made."""
    before = connections_to(roomy.address)
    return lambda: connections_to(roomy.address) - before


def test_calls_are_answered_beside_more_watches_than_one_connection_takes(
    options: dict[str, Any], connected: Callable[[], int]
) -> None:
    with MnemeClient(**options) as client:
        watches = [client.watch_events(timeout=30) for _ in range(WATCHES)]
        for watch in watches:
            next(watch)
        client.record_events([SAID])
        assert [next(watch).event.text for watch in watches] == ["still served"] * WATCHES
        assert connected() == WATCHES + 1
        ended: list[type[BaseException]] = []
        waiting = [threading.Thread(target=_follow, args=(watch, ended)) for watch in watches]
        for thread in waiting:
            thread.start()
    for thread in waiting:
        thread.join(timeout=30)
    assert ended == [errors.CancelledError] * WATCHES, "closing the client ended each of them"
    wait_until(lambda: connected() == 0, "all connections are closed")
    with pytest.raises(errors.ClosedError):
        client.watch_events()


def _follow(watch: Any, ended: list[type[BaseException]]) -> None:
    try:
        next(watch)
    except Exception as error:
        ended.append(type(error))


def test_async_calls_are_answered_beside_more_watches_than_one_connection_takes(
    options: dict[str, Any], connected: Callable[[], int]
) -> None:
    async def scenario() -> None:
        async with AsyncMnemeClient(**options) as client:
            watches = [client.watch_events(timeout=30) for _ in range(WATCHES)]
            await asyncio.gather(*(anext(watch) for watch in watches))
            await client.record_events([SAID])
            seen = await asyncio.gather(*(anext(watch) for watch in watches))
            assert [message.event.text for message in seen] == ["still served"] * WATCHES
            assert connected() == WATCHES + 1
            waiting = [asyncio.ensure_future(anext(watch)) for watch in watches]
            await asyncio.sleep(0)
        done, left = await asyncio.wait(waiting, timeout=30)
        assert not left, "closing the client ended each of them"
        assert all(task.cancelled() or task.exception() for task in done)
        with pytest.raises(errors.ClosedError):
            await anext(client.watch_events())

    asyncio.run(scenario())
    gc.collect()
    wait_until(lambda: connected() == 0, "all connections are closed", 10)


def test_a_stream_that_ends_frees_its_connection(
    options: dict[str, Any], connected: Callable[[], int]
) -> None:
    with MnemeClient(**options) as client:
        client.list_sessions()

        def freed(how: str) -> None:
            wait_until(lambda: connected() == 1, f"the connection is closed of a stream that {how}")

        with client.watch_events() as watch:
            next(watch)
            assert connected() == 2
        freed("was left")
        watch = client.watch_events(timeout=1)  # Connecting is part of it.
        with pytest.raises(errors.DeadlineExceededError):
            list(watch)
        freed("took too long")
        refused = client.watch_events(after_cursor="x")
        with pytest.raises(errors.InvalidArgumentError):
            next(refused)
        freed("was refused")
        next(client.watch_events())
        gc.collect()
        freed("nobody holds any more")
        client.list_sessions()


def test_an_async_stream_that_ends_frees_its_connection(
    options: dict[str, Any], connected: Callable[[], int]
) -> None:
    async def scenario() -> None:
        async with AsyncMnemeClient(**options) as client:
            await client.list_sessions()

            async def freed(how: str) -> None:
                what = f"the connection is closed of a stream that {how}"
                await asyncio.to_thread(wait_until, lambda: connected() == 1, what)

            async with client.watch_events() as watch:
                await anext(watch)
                assert connected() == 2
            await freed("was left")
            watch = client.watch_events(timeout=1)
            with pytest.raises(errors.DeadlineExceededError):
                _ = [message async for message in watch]
            await freed("took too long")
            refused = client.watch_events(after_cursor="x")
            with pytest.raises(errors.InvalidArgumentError):
                await anext(refused)
            await freed("was refused")
            await client.list_sessions()

    asyncio.run(scenario())


def test_a_watch_that_finds_no_server_says_so_also_when_its_time_is_up(unused: str) -> None:
    nobody = pytest.raises(errors.UnavailableError, match="no Mneme server answers")
    with MnemeClient(unused, wait_for_ready=True) as client, nobody:
        next(client.watch_events(timeout=0.3))


@pytest.fixture
def unused(tmp_path: Path) -> str:
    """An address where nothing listens."""
    return f"unix:{tmp_path / 'nobody'}"
