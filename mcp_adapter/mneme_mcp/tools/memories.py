"""`agentdb_*`: memories of users and projects, apart from any session."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from mneme import to_dict
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mneme_mcp.arguments import Labels, SnakeArguments, Time
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import Item, cut, day, listing, one_line
from mneme_mcp.tool import Call, Reply, ToolSpec

_PREVIEW = 50
_TEXT_TOKENS = 800
_MS = 1_000


def _moment(value: Any) -> Any:
    """A time, also as seconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            raise ValueError("should be seconds since 1970, or a time") from None
    return value


class Filters(BaseModel):
    """Which memories; what is left out does not filter."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[Labels, Field(description="With at least one of these.")] = []
    metadata: Annotated[dict[str, Any], Field(description="With these values.")] = {}

    def request(self) -> dict[str, Any]:
        """As the API takes them."""
        return {"any_tags": self.tags, "metadata": self.metadata or None}


class DeleteFilters(Filters):
    """Which memories to delete."""

    before_timestamp: Annotated[
        Time | None,
        BeforeValidator(_moment),
        Field(description="Older than this: seconds since 1970, or a time."),
    ] = None
    min_age_days: Annotated[
        float, Field(ge=0, le=3_650_000, description="At least so many days old.")
    ] = 0

    def request(self) -> dict[str, Any]:
        """As the API takes them."""
        times = {"end_time": self.before_timestamp, "min_age_days": self.min_age_days}
        return super().request() | times


class Found(SnakeOutput):
    """A memory that was found."""

    api_names = {"id": "vector_id"}

    vector_id: str
    text: str
    similarity: float
    tags: list[str] = []
    metadata: Free = {}
    user_id: str = ""
    project: str = ""
    since: str = ""


class InsertArguments(SnakeArguments):
    """What to remember."""

    text: Annotated[str, Field(min_length=1, description="What to remember, in a sentence.")]
    tags: Annotated[Labels, Field(description='Labels, e.g. ["auth", "security"].')] = []
    metadata: Annotated[
        dict[str, Any], Field(description='Free JSON, e.g. {"priority": "high"}.')
    ] = {}
    user_id: Annotated[str, Field(description="The user it is about.")] = ""
    agent_id: Annotated[str, Field(description="Only for this agent; empty: for all.")] = ""
    project: Annotated[str, Field(description="The project it is about.")] = ""
    supersedes: Annotated[
        Labels, Field(description="Ids of memories of the same user that it replaces.")
    ] = []


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
    answer = to_dict(
        await call.client.insert_memory(
            given.text,
            tags=given.tags,
            metadata=given.metadata or None,
            user_id=given.user_id,
            agent_id=given.agent_id,
            project=given.project,
            supersedes=given.supersedes,
        )
    )
    memory, figures = answer["memory"], answer["figures"]
    stored = InsertOutput(
        vector_id=memory["id"],
        text_preview=_preview(memory["text"]),
        embedding_dimension=figures["embedding_dimension"],
        tags=memory["tags"],
        metadata=memory.get("metadata", {}),
        cache_hit=bool(figures["cache_hits"]),
        latency_ms=_ms_since(began),
        already_known=answer["already_known"],
        similar=[_found(one) for one in answer["similar"]],
        superseded=[old["id"] for old in answer["superseded"]],
    )
    return Reply("\n".join(_told(stored)), stored)


def _told(stored: InsertOutput) -> list[str]:
    what = "Known already" if stored.already_known else "Stored"
    lines = [f"{what}: {stored.text_preview} (id {stored.vector_id})"]
    if stored.superseded:
        lines.append(f"It supersedes {', '.join(stored.superseded)}.")
    if stored.similar:
        lines.append("Close to it, and older; if it replaces one, send it again with supersedes:")
    for one in stored.similar:
        text = one_line(cut(one.text, _TEXT_TOKENS // 10))
        lines.append(f"- {one.vector_id}, since {day(one.since)}: {text}")
    return lines


class BatchItem(BaseModel):
    """One of many."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1)]
    tags: Labels = []
    metadata: dict[str, Any] = {}
    user_id: str = ""
    project: str = ""


class BatchArguments(SnakeArguments):
    """What to remember, many at once."""

    items: Annotated[
        list[BatchItem],
        Field(min_length=1, max_length=10_000, description="What to remember, one by one."),
    ]
    batch_size: Annotated[
        int, Field(ge=1, le=500, description="So many are stored together, all or none.")
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
        part = [_new(item) for item in given.items[start : start + given.batch_size]]
        async for message in call.client.insert_memories(part):
            answer = to_dict(message)
            ids += [receipt["memory_id"] for receipt in answer["receipts"]]
        counts = {name: answer[name] for name in ("inserted_count", "known_count")}
        for name, value in (counts | answer["figures"]).items():
            totals[name] = totals.get(name, 0) + value
        await call.progress(len(ids), len(given.items), f"{len(ids)} stored")
    total_ms = _ms_since(began)
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


def _new(item: BatchItem) -> Any:
    return {
        "text": item.text,
        "tags": item.tags,
        "metadata": item.metadata or None,
        "user_id": item.user_id,
        "project": item.project,
    }


class SearchArguments(SnakeArguments):
    """What to look for."""

    synonyms = {"k": "limit"}

    query: Annotated[str, Field(min_length=1, max_length=8192, description="What to look for.")]
    limit: Annotated[int, Field(ge=1, le=100, description="Memories at most.")] = 10
    min_score: Annotated[
        float, Field(ge=0, le=1, description="Leave out memories less similar than this cosine.")
    ] = 0.0
    filters: Annotated[
        Filters,
        Field(description='E.g. {"tags": ["auth"], "metadata": {"priority": "high"}}.'),
    ] = Filters()
    user_id: Annotated[str, Field(description="About this user.")] = ""
    project: Annotated[str, Field(description="About this project.")] = ""


class SearchStats(SnakeOutput):
    """What was searched, and how long it took."""

    total_matches: int
    returned: int
    searched: int
    search_time_ms: float
    hnsw_used: bool


class SearchOutput(SnakeOutput):
    """The memories found, closest first."""

    query: str
    results: list[Found]
    stats: SearchStats


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `agentdb_search`."""
    answer = to_dict(
        await call.client.search_memories(
            given.query,
            limit=given.limit,
            min_similarity=given.min_score,
            filter={
                **given.filters.request(), "user_id": given.user_id, "project": given.project,
            },  # type: ignore[arg-type]
        )
    )  # fmt: skip
    results = [_found(one) for one in answer["results"]]
    found = SearchOutput(
        query=given.query,
        results=results,
        stats=SearchStats(
            total_matches=answer["total_matches"],
            returned=len(results),
            searched=answer["searched_count"],
            search_time_ms=answer["embedding_ms"] + answer["search_ms"],
            hnsw_used=answer["index_kind"] == "hnsw",
        ),
    )
    if not results:
        return Reply(f"None of {found.stats.searched} memories fits.", found)
    items = [
        Item(
            f"{place}. [{one.similarity:.2f}; since {day(one.since)}; id {one.vector_id}]", one.text
        )
        for place, one in enumerate(results, 1)
    ]
    return Reply(listing("Memories, closest first:", items, _TEXT_TOKENS).text, found, _TEXT_TOKENS)


class DeleteArguments(SnakeArguments):
    """What to delete."""

    vector_ids: Annotated[Labels, Field(max_length=1000, description="These memories.")] = []
    filters: Annotated[
        DeleteFilters, Field(description='All of these, e.g. {"tags": ["temp"]}.')
    ] = DeleteFilters()
    dry_run: Annotated[bool, Field(description="Only tell what would be deleted.")] = False

    @model_validator(mode="after")
    def _names_some(self) -> DeleteArguments:
        if not self.vector_ids and self.filters == DeleteFilters():
            raise ValueError("give vector_ids, or filters that pick some memories")
        return self


class DeletedCounts(SnakeOutput):
    """How many of each were deleted."""

    vectors: int


class DeleteOutput(SnakeOutput):
    """What was deleted, or would be."""

    deleted: DeletedCounts
    vector_ids_deleted: list[str]
    restored_ids: list[str] = []
    dry_run: bool
    latency_ms: float


async def delete(call: Call, given: DeleteArguments) -> Reply:
    """Answer `agentdb_delete`."""
    began = time.perf_counter()
    answer = to_dict(
        await call.client.delete_memories(
            memory_ids=given.vector_ids,
            filter=given.filters.request(),  # type: ignore[arg-type]
            dry_run=given.dry_run,
        )
    )
    done = DeleteOutput(
        deleted=DeletedCounts(vectors=answer["deleted_count"]),
        vector_ids_deleted=answer["memory_ids"],
        restored_ids=answer["restored_ids"],
        dry_run=given.dry_run,
        latency_ms=_ms_since(began),
    )
    what = "would be deleted" if given.dry_run else "deleted"
    return Reply(f"{answer['deleted_count']} memories {what}.", done)


def _found(found: Mapping[str, Any]) -> Found:
    return Found.model_validate({**found["memory"], "similarity": found["similarity"]})


def _preview(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW]}..."


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * _MS


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="agentdb_insert",
        title="Remember",
        description=(
            "Stores something to remember, with its embedding: a fact, a preference, a decision; "
            "of a user, a project, or of nobody.\n"
            "Use it when you learn what will matter beyond this session.\n"
            "Returns its id. What is known already is not stored twice. Close older memories come "
            "with it: if the new one replaces one, send it again with supersedes.\n"
            'Example: {"text": "Ann wants her invoices by email", "user_id": "ann", "tags": '
            '["billing"]}.'
        ),
        arguments=InsertArguments,
        output=InsertOutput,
        handler=insert,
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
    ToolSpec(
        name="agentdb_search",
        title="Search memories",
        description=(
            "Searches memories by meaning, filtered by tags (any of them) and metadata.\n"
            "Use it when you know what kind of memory you want; agentlens_recall looks everywhere "
            "and weighs words and dates, too.\n"
            "Returns the closest, with the cosine of each. Superseded ones are left out.\n"
            'Example: {"query": "how does Ann want her invoices", "filters": {"tags": '
            '["billing"]}}.'
        ),
        arguments=SearchArguments,
        output=SearchOutput,
        handler=search,
        read_only=True,
    ),
    ToolSpec(
        name="agentdb_delete",
        title="Delete memories",
        description=(
            "Deletes memories for good, by id or by filters; with dry_run only tells which.\n"
            "Use it when asked to; what is outdated is better superseded.\n"
            "Returns what was deleted.\n"
            'Example: {"filters": {"tags": ["temporary"], "min_age_days": 30}, "dry_run": true}.'
        ),
        arguments=DeleteArguments,
        output=DeleteOutput,
        handler=delete,
        destructive=True,
    ),
)
