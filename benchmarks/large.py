"""A data folder with very many memories, filled fast: their vectors are not the model's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.errors import ResourceExhaustedError
from mneme.messages import NewEvent

from benchmarks.memories import NEVER_S, TENANT, batches, kept, wait_until_embedded
from benchmarks.server import Server
from benchmarks.texts import events

AGENTS = {"clerk": 100, "builder": 10}
"""Whose memories are one in so many."""
WORKER = "index-worker"
_BATCH = 1_000
_PART = 100_000
_SETTLED_S = 5.0
_SETTINGS = {
    "session_idle_seconds": NEVER_S,
    "embed_queue_limit": "20000",
    "embed_batch": "512",
}


@dataclass(frozen=True)
class Large:
    """A finished data folder. Copy it before a server uses it.

    `upkeep_s` is the processor time that the index took in the background for each 100,000
    memories, in their order; `peak_rss` the server's largest resident memory in bytes meanwhile.
    """

    folder: Path
    count: int
    built_at: str
    upkeep_s: list[float]
    peak_rss: int


def ensure(cache: Path, count: int, say: Callable[[str], None]) -> Large:
    """Return the data folder with `count` memories, building it when it is not there yet."""
    folder, built = kept(cache, "large", count, lambda folder: _build(folder, count, say))
    return Large(folder / "data", count, built["built_at"], built["upkeep_s"], built["peak_rss"])


def _made(count: int) -> Iterator[list[NewEvent]]:
    """Yield the events in batches, some of them those of an agent."""
    for batch in batches(events(count), _BATCH):
        for event in batch:
            session = int(event.session_id.removeprefix("s"))
            agents = (agent for agent, one_in in AGENTS.items() if session % one_in == 3)
            event.agent_id = next(agents, "")
        yield batch


def _build(folder: Path, count: int, say: Callable[[str], None]) -> dict[str, Any]:
    upkeep_s: list[float] = []
    peak = recorded = 0
    with Server(folder / "data", _SETTINGS, module="benchmarks.quick_server") as server:
        client = server.tenant(TENANT)
        for batch in _made(count):
            record(client, batch)
            recorded += len(batch)
            peak = max(peak, server.memory()["rss"])
            if recorded % _PART == 0 or recorded == count:
                _wait_until_idle(server, client)
                upkeep_s.append(server.thread_s(WORKER) - sum(upkeep_s))
                say(
                    f"{recorded:,} of {count:,} memories: {upkeep_s[-1]:.0f} s of upkeep,"
                    f" {server.memory()['rss'] / 1e6:.0f} MB"
                )
    return {"upkeep_s": upkeep_s, "peak_rss": peak}


def record(client: MnemeClient, batch: list[NewEvent]) -> None:
    """Record events, as soon as the queue has room for them."""
    while True:
        try:
            client.record_events(batch)
        except ResourceExhaustedError:
            time.sleep(0.2)  # More wait for their vectors than the queue holds.
        else:
            return


def _wait_until_idle(server: Server, client: MnemeClient) -> None:
    """Wait until all have vectors and the index has done what it wanted to."""
    wait_until_embedded(client, lambda _: None)
    spent = -1.0
    while (now := server.thread_s(WORKER)) != spent:
        spent = now
        time.sleep(_SETTLED_S)
