"""A tenant as a dashboard meets it: sessions of messages, calls, errors and costs, all embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme.messages import NewEvent

from benchmarks.large import record
from benchmarks.memories import (
    NEVER_S,
    TENANT,
    batches,
    kept,
    wait_until_embedded,
    wait_until_settled,
)
from benchmarks.server import Server
from benchmarks.texts import EVENTS_PER_SESSION, events

AGENTS, PROJECTS, MODELS = 12, 7, ("large", "small", "tiny")
_TOOLS = ("bash", "search", "edit_file", "run_tests", "http_request")
_BATCH = 1_000
_SETTINGS = {"session_idle_seconds": NEVER_S, "embed_queue_limit": "20000", "embed_batch": "512"}


@dataclass(frozen=True)
class Watched:
    """A finished data folder. Copy it before a server uses it."""

    folder: Path
    count: int


def ensure(cache: Path, count: int, say: Callable[[str], None]) -> Watched:
    """Return the data folder with `count` memories, building it when it is not there yet."""
    folder, _ = kept(cache, "dashboard", count, lambda folder: _build(folder, count, say))
    return Watched(folder / "data", count)


def _build(folder: Path, count: int, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"recording {count:,} memories for the dashboard")
    with Server(folder / "data", _SETTINGS, module="benchmarks.quick_server") as server:
        client = server.tenant(TENANT)
        started: set[str] = set()
        for batch in _made(count):
            for session in {event.session_id for event in batch} - started:
                number = int(session.removeprefix("s"))
                client.start_session(
                    session_id=session,
                    agent_id=f"agent-{number % AGENTS}",
                    project=f"project-{number % PROJECTS}",
                    user_id=f"user-{number % 500}",
                )
                started.add(session)
            record(client, batch)
        for session in sorted(started):
            failed = int(session.removeprefix("s")) % 9 == 0
            client.end_session(session, status="error" if failed else "completed")
        wait_until_embedded(client, lambda _: None)
        if count > 20_000:
            wait_until_settled(client, "hnsw")
    return {"count": count}


def _made(count: int) -> Iterator[list[NewEvent]]:
    """Yield the events in batches: a fifth each are calls, their answers, and of models."""
    for batch in batches(events(count), _BATCH):
        for event in batch:
            session = int(event.session_id.removeprefix("s"))
            place = int(event.id.rpartition("-")[2])
            event.agent_id = f"agent-{session % AGENTS}"
            event.searchable = True
            _shape(event, session, place)
        yield batch


def _shape(event: NewEvent, session: int, place: int) -> None:
    number = session * EVENTS_PER_SESSION + place
    tool = _TOOLS[(number // 5) % len(_TOOLS)]
    match place % 5:
        case 1:
            event.event_type, event.name = "tool_call", tool
            event.call_id = f"c{number}"
        case 2:
            failed = number % 40 == 2
            event.event_type = "tool_error" if failed else "tool_response"
            event.name, event.call_id = tool, f"c{number - 1}"
            event.duration.FromMilliseconds(20 + number * 37 % 3_000)
            if failed:
                event.error = event.text
        case 3:
            event.event_type, event.model = "llm_response", MODELS[number % len(MODELS)]
            event.input_tokens, event.output_tokens = 800 + number % 900, 60 + number % 200
            event.cost_usd = 0.001 + number % 100 / 10_000
            event.duration.FromMilliseconds(400 + number * 53 % 6_000)
