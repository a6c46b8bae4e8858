"""`agentdb_insert` and `agentdb_insert_batch`: what is to be remembered."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from mneme import MnemeError, to_dict
from mneme.errors import FieldViolation
from mneme.visible import visible_line
from pydantic import Field

from mneme_mcp.arguments import Labels, Nested, SnakeArguments
from mneme_mcp.errors import refusal_of
from mneme_mcp.offers import offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import cut, day, one_line
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.memories import TEXT_TOKENS, Found, found_memory, ms_since

_PREVIEW = 50
_MS = 1_000


@offers(
    "create_memory",
    text="What to remember, in a sentence.",
    tags='Labels, e.g. ["auth", "security"].',
    metadata='Free JSON, e.g. {"priority": "high"}.',
    user_id=...,
    agent_id="Only for this agent; empty: for all.",
    project=...,
    supersedes=...,
)
class InsertArguments(SnakeArguments):
    """What to remember."""


class InsertOutput(SnakeOutput):
    """The memory that holds the text."""

    vector_id: str
    text_preview: str
    embedding_dimension: int
    tags: list[str] = []
    metadata: Free = {}
    cache_hit: bool
    latency_ms: float
    already_known: bool
    similar: list[Found] = []
    superseded: list[str] = []


async def insert(call: Call, given: InsertArguments) -> Reply:
    """Answer `agentdb_insert`."""
    began = time.perf_counter()
    answer = to_dict(await call.client.create_memory(**given.request()))
    memory, figures = answer["memory"], answer["figures"]
    stored = InsertOutput(
        vector_id=memory["id"],
        text_preview=_preview(memory["text"]),
        embedding_dimension=figures["embedding_dimension"],
        tags=memory["tags"],
        metadata=memory.get("metadata", {}),
        cache_hit=bool(figures["cache_hits"]),
        latency_ms=ms_since(began),
        already_known=answer["already_known"],
        similar=[found_memory(one) for one in answer["similar"]],
        superseded=[old["id"] for old in answer["superseded"]],
    )
    return Reply("\n".join(_told(stored)), stored)


def _told(stored: InsertOutput) -> list[str]:
    what = "Known already" if stored.already_known else "Stored"
    lines = [f"{what}: {stored.text_preview} (id {stored.vector_id})"]
    if stored.superseded:
        lines.append(f"It supersedes {', '.join(stored.superseded)}.")
    if stored.similar:
        lines.append("Older ones close to it; if it replaces one, send it again with supersedes:")
    for one in stored.similar:
        text = visible_line(cut(one.text, TEXT_TOKENS // 10))
        lines.append(f"- {one.vector_id}, since {day(one.since)} > {text}")
    return lines


class BatchItem(Nested):
    """One of many."""

    text: Annotated[str, Field(min_length=1)]
    tags: Labels = []
    metadata: dict[str, Any] = {}
    user_id: str = ""
    project: str = ""


class BatchArguments(SnakeArguments):
    """What to remember, many at once."""

    holders = {"memory": "items"}

    items: Annotated[
        list[BatchItem],
        Field(min_length=1, max_length=10_000, description="What to remember, one by one."),
    ]
    batch_size: Annotated[
        int, Field(ge=1, le=500, description="How many are sent and stored together.")
    ] = 100


class BatchStats(SnakeOutput):
    """What it took."""

    embedding_time_ms: float
    insertion_time_ms: float
    total_time_ms: float
    vectors_per_second: float
    cache_hits: int
    cache_misses: int


class BatchOutput(SnakeOutput):
    """The memories that hold the texts, in the order of the items."""

    total_inserted: int
    already_known: int
    vector_ids: list[str]
    stats: BatchStats


async def insert_batch(call: Call, given: BatchArguments) -> Reply:
    """Answer `agentdb_insert_batch`."""
    began = time.perf_counter()
    ids: list[str] = []
    totals: dict[str, float] = {}
    for start in range(0, len(given.items), given.batch_size):
        part = _Part(given.items, range(start, start + given.batch_size))
        try:
            async for message in call.client.create_memories(part):
                answer = to_dict(message)
                ids += [receipt["memory_id"] for receipt in answer["receipts"]]
        except (MnemeError, ValueError) as error:
            raise part.located(error, len(ids)) from None
        counts = {name: answer[name] for name in ("inserted_count", "known_count")}
        for name, value in (counts | answer["figures"]).items():
            totals[name] = totals.get(name, 0) + value
        await call.progress(len(ids), len(given.items), f"{len(ids)} stored")
    total_ms = ms_since(began)
    embedded = totals["cache_hits"] + totals["cache_misses"] - totals["queued_count"]
    stored = BatchOutput(
        total_inserted=int(totals["inserted_count"]),
        already_known=int(totals["known_count"]),
        vector_ids=ids,
        stats=BatchStats(
            embedding_time_ms=totals["embedding_ms"],
            insertion_time_ms=totals["writing_ms"],
            total_time_ms=total_ms,
            vectors_per_second=embedded / total_ms * _MS,
            cache_hits=int(totals["cache_hits"]),
            cache_misses=int(totals["cache_misses"]),
        ),
    )
    text = f"{stored.total_inserted} stored, {stored.already_known} known already."
    return Reply(text, stored)


class _Part:
    """Items that are sent in one stream, one by one.

    Args:
        items: all that there are.
        places: which of them.
    """

    def __init__(self, items: Sequence[BatchItem], places: range) -> None:
        self._items = items[places.start : places.stop]
        self._start = places.start
        self._taken = places.start

    def __iter__(self) -> Iterator[Any]:
        for place, item in enumerate(self._items, self._start):
            self._taken = place
            yield {
                "text": item.text,
                "tags": item.tags,
                "metadata": item.metadata or None,
                "user_id": item.user_id,
                "project": item.project,
            }

    def located(self, error: MnemeError | ValueError, stored: int) -> MnemeError:
        """What went wrong, with its place among all items, and how many of them are stored."""
        if not isinstance(error, MnemeError):  # The client cannot send the one that it took last.
            error = refusal_of(error)
            error.metadata["message_index"] = str(self._taken - self._start)
        error.metadata["recorded"] = str(stored)
        if "message_index" in error.metadata:
            place = self._start + int(error.metadata["message_index"])
            error.metadata["message_index"] = str(place)
            error.violations = tuple(_placed(one, place) for one in error.violations)
        return error


def _placed(violation: FieldViolation, place: int) -> FieldViolation:
    field = violation.field.replace("memory", f"memory[{place}]", 1)
    return replace(
        violation, field=field, description=violation.description.replace(violation.field, field)
    )


def _preview(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW]}..."


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="agentdb_insert",
        title="Remember",
        description=(
            "Stores something to remember, with its embedding: a fact, a preference, a decision; "
            "about a user, a project, or neither.\n"
            "Use it when you learn what will matter beyond this session.\n"
            "Returns its id, and older memories close to it: if it replaces one of them, send it "
            "again with supersedes. What is already known is not stored twice.\n"
            'Example: {"text": "Ann wants her invoices by email", "user_id": "ann", "tags": '
            '["billing"]}.'
        ),
        arguments=InsertArguments,
        output=InsertOutput,
        handler=insert,
        if_missing="agentdb_search finds memories and their ids.",
    ),
    ToolSpec(
        name="agentdb_insert_batch",
        title="Remember many",
        description=(
            "Stores many memories at once, embedded together.\n"
            "Use it to bring in what was known before.\n"
            "Returns their ids in the order of the items, and measured times.\n"
            'Example: {"items": [{"text": "Deploys run on Fridays", "tags": ["ops"]}]}.'
        ),
        arguments=BatchArguments,
        output=BatchOutput,
        handler=insert_batch,
    ),
)
