"""What is shown of a recalled memory beside its text."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.clock import MICROSECONDS
from mneme_server.engine.store.kinds import Details
from mneme_server.engine.store.rows import decode_tags
from mneme_server.features.memory.model import Importance
from mneme_server.features.memory.store.tables import memories


def _memory(
    tags: str, metadata: str, importance: int, *times: *tuple[int, int | None, str]
) -> JsonObject:
    since_us, until_us, superseded_by = times
    details: dict[str, Json] = {
        "tags": decode_tags(tags),
        "metadata": json.loads(metadata),
        "importance": Importance(importance).name,
        "since": _day_and_time(since_us),
    }
    if superseded_by:
        details["superseded_by"] = superseded_by
    if until_us is not None:
        details["until"] = _day_and_time(until_us)
    return details


def _day_and_time(us: int) -> str:
    """Return a time as RFC 3339 has it, to the second."""
    return datetime.fromtimestamp(us // MICROSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MEMORY_DETAILS = Details(
    key=memories.c.id,
    columns=(
        memories.c.tags,
        memories.c.metadata,
        memories.c.importance,
        memories.c.since,
        memories.c.until,
        memories.c.superseded_by,
    ),
    decode=_memory,
    followed=True,
)
