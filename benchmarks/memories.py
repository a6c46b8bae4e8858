"""A data folder with many memories, built once through the API and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mneme import MnemeClient
from mneme.messages import NewEvent

from benchmarks.server import ROOT, Server
from benchmarks.texts import MadeEvent, events

TENANT = "memories"
_BATCH = 500
_SETTLED_S = 1.0
NEVER_S = str(100 * 365 * 86_400)
_VERSION = 2  # Raise it when what is recorded, or how, changes here.
# What decides what the database holds besides; when one changes, it is built again. Indexes of an
# older layout are rebuilt by the server.
_SOURCES = (
    "benchmarks/texts.py",
    "server/mneme_server/engine/embedding/minilm.py",
    "server/mneme_server/engine/store/*_migrations/*.py",
)


@dataclass(frozen=True)
class Memories:
    """A finished data folder. Copy it before a server uses it.

    `seconds` is how long it took to record, embed and index the `count` events.
    """

    folder: Path
    count: int
    built_at: str
    seconds: float


def new_event(made: MadeEvent, prefix: str = "") -> NewEvent:
    """Return the event to record; its id comes from its place, so it is the same each time."""
    event = NewEvent(
        id=f"{prefix}e{made.session}-{made.place}",
        session_id=f"{prefix}s{made.session}",
        event_type="message",
        text=made.text,
    )
    event.timestamp.FromSeconds(made.at_s)
    return event


def batches(made: Iterable[MadeEvent], size: int, prefix: str = "") -> Iterator[list[NewEvent]]:
    """Return events in lists of `size`."""
    batch: list[NewEvent] = []
    for event in made:
        batch.append(new_event(event, prefix))
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def ensure(cache: Path, count: int, say: Callable[[str], None]) -> Memories:
    """Return the data folder with `count` memories, building it when it is not there yet."""
    folder, built = kept(cache, "memories", count, lambda folder: _build(folder, count, say))
    say(f"{count:,} memories built {built['built_at']} in {built['seconds']:.0f} s: {folder}")
    return Memories(folder / "data", count, built["built_at"], built["seconds"])


def kept(
    cache: Path, name: str, count: int, build: Callable[[Path], dict[str, Any]]
) -> tuple[Path, dict[str, Any]]:
    """Return a folder of this version and what was noted of it, building it when it is not there
    yet; folders of older versions are removed."""
    folder = cache / f"{name}-{count}-{version()}"
    note = folder / "built.json"
    if not note.exists():
        for old in cache.glob(f"{name}-{count}-*"):
            shutil.rmtree(old, ignore_errors=True)
        built_at = {"built_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
        note.write_text(json.dumps(build(folder) | built_at))
    return folder, json.loads(note.read_text())


def copy(memories: Memories, target: Path) -> Path:
    """Copy the data folder to `target`, for a server that may change it."""
    shutil.copytree(memories.folder, target)
    return target


def wait_until_embedded(client: MnemeClient, progress: Callable[[int], None]) -> None:
    """Wait until no memory of the client's tenant waits; tell how many still do."""
    while pending := client.get_stats().tenant.pending_count:
        progress(pending)
        time.sleep(0.2)


def wait_until_settled(client: MnemeClient, expect_mode: str) -> None:
    """Wait until vectors are searched in this mode ("exact" or "hnsw"); at most two minutes.

    Raises:
        TimeoutError: they are not.
    """
    until = time.monotonic() + 120
    while client.get_stats().tenant.dense_index != expect_mode:
        if time.monotonic() > until:
            raise TimeoutError(f"the index did not become {expect_mode} in two minutes")
        time.sleep(0.2)


def _build(folder: Path, count: int, say: Callable[[str], None]) -> dict[str, Any]:
    started = time.perf_counter()
    # Or the summaries of its sessions would be made whenever a benchmark runs half an hour later.
    with Server(folder / "data", {"session_idle_seconds": NEVER_S}) as server:
        client = server.tenant(TENANT)
        recorded = 0
        for batch in batches(events(count), _BATCH):
            client.record_events(batch)
            recorded += len(batch)
            if recorded % 10_000 == 0:
                say(f"recorded {recorded:,} of {count:,} memories")
        last_said = [time.monotonic()]

        def progress(pending: int) -> None:
            if time.monotonic() - last_said[0] > 10:
                last_said[0] = time.monotonic()
                say(f"embedded {count - pending:,} of {count:,}")

        wait_until_embedded(client, progress)
        seconds = time.perf_counter() - started
        time.sleep(_SETTLED_S)
        if count > 20_000:
            wait_until_settled(client, "hnsw")
    return {"seconds": round(seconds, 1), "count": count}


def version() -> str:
    """Return what names the data: another when what decides its content changes."""
    digest = hashlib.sha256(str(_VERSION).encode())
    for pattern in _SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
