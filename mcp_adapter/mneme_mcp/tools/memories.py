"""`agentdb_search` and `agentdb_delete`: memories of users and projects, apart from any session."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from mneme import to_dict
from pydantic import BeforeValidator, Field, model_validator

from mneme_mcp.arguments import Labels, Nested, SnakeArguments, Time
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import STRUCTURED_HAS_ALL, Item, counted, day, listing
from mneme_mcp.tool import Call, Reply, ToolSpec

TEXT_TOKENS = 800
_MS = 1_000
_SECONDS = re.compile(r"\d{5,20}(\.\d{1,9})?")
"""No year has five digits."""


def _moment(value: Any) -> Any:
    """A time, also as seconds since 1970, which may be written as a text."""
    if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            raise ValueError("should be seconds since 1970, or a time") from None
    return value


class Filters(Nested):
    """Which memories; what is left out does not filter."""

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
        Field(
            description="Older than this: seconds since 1970, or a time.",
        ),
    ] = None
    min_age_days: Annotated[
        float, Field(ge=0, le=3_650_000, description="At least this many days old.")
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
    causal_uplift: float | None = None
    tags: list[str] = []
    metadata: Free = {}
    user_id: str = ""
    project: str = ""
    since: str = ""


@offers(
    "search_memories",
    query=...,
    limit=...,
    min_score="Leave out memories whose cosine similarity is lower.",
    filters=(
        Filters,
        Field(Filters(), description='E.g. {"tags": ["auth"], "metadata": {"priority": "high"}}.'),
    ),
    user_id=...,
    project=...,
    rerank="Also rank higher what causal edges show to be helpful.",
)
class SearchArguments(SnakeArguments):
    """What to look for."""

    synonyms = {"k": "limit"}
    holders = {"filter.any_tags": "filters.tags", "filter.metadata": "filters.metadata"}


class SearchStats(SnakeOutput):
    """What was searched, and how long it took."""

    total_matches: int
    returned: int
    searched: int
    search_time_ms: float
    rerank_time_ms: float
    hnsw_used: bool


class SearchOutput(SnakeOutput):
    """The memories found, closest first."""

    query: str
    results: list[Found]
    stats: SearchStats


async def search(call: Call, given: SearchArguments) -> Reply:
    """Answer `agentdb_search`."""
    request = given.request()
    picked = request.pop("filter", {}) | given.filters.request()
    answer = to_dict(await call.client.search_memories(**request, filter=picked))
    results = [found_memory(one) for one in answer["results"]]
    found = SearchOutput(
        query=given.query,
        results=results,
        stats=SearchStats(
            total_matches=answer["total_matches"],
            returned=len(results),
            searched=answer["searched_count"],
            search_time_ms=answer["embedding_ms"] + answer["search_ms"],
            rerank_time_ms=answer["rerank_ms"],
            hnsw_used=answer["index_kind"] == "hnsw",
        ),
    )
    if not results:
        searched = counted(found.stats.searched, "memory", "memories")
        return Reply(f"None of {searched} fits.", found)
    items = [
        Item(
            f"{place}. [{one.similarity:.2f}; since {day(one.since)}; id {one.vector_id}]", one.text
        )
        for place, one in enumerate(results, 1)
    ]
    order = "best first" if given.rerank else "closest first"
    return Reply(
        listing(f"Memories, {order}:", items, TEXT_TOKENS, more=STRUCTURED_HAS_ALL).text,
        found,
        TEXT_TOKENS,
    )


@offers(
    "delete_memories",
    vector_ids=Offer("Ids of memories to delete.", at="memory_ids"),
    filters=(
        DeleteFilters,
        Field(DeleteFilters(), description='And all that match, e.g. {"tags": ["temp"]}.'),
    ),
    cascade="Also delete episodes, skills and causal edges that rest on them.",
    dry_run="Only say what would be deleted.",
)
class DeleteArguments(SnakeArguments):
    """What to delete."""

    synonyms = {"memory_ids": "vector_ids"}
    holders = {
        "filter.any_tags": "filters.tags",
        "filter.end_time": "filters.before_timestamp",
        "filter": "filters",
    }

    @model_validator(mode="after")
    def _names_some(self) -> DeleteArguments:
        if not self.vector_ids and self.filters == DeleteFilters():
            raise ValueError("give vector_ids, or filters that pick some memories")
        return self


class DeletedCounts(SnakeOutput):
    """How many of each were deleted."""

    vectors: int
    episodes: int
    skills: int
    causal_edges: int


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
            **given.request(),
            filter=given.filters.request(),
        )
    )
    done = DeleteOutput(
        deleted=DeletedCounts(
            vectors=answer["deleted_count"],
            episodes=answer["episode_count"],
            skills=answer["skill_count"],
            causal_edges=answer["causal_edge_count"],
        ),
        vector_ids_deleted=answer["memory_ids"],
        restored_ids=answer["restored_ids"],
        dry_run=given.dry_run,
        latency_ms=ms_since(began),
    )
    what = "would be deleted" if given.dry_run else "deleted"
    return Reply(f"{counted(answer['deleted_count'], 'memory', 'memories')} {what}.", done)


def found_memory(found: Mapping[str, Any]) -> Found:
    """Return a memory that was found, as an answer holds it."""
    measured = {name: found.get(name) for name in ("similarity", "causal_uplift")}
    return Found.model_validate({**found["memory"], **measured})


def ms_since(began: float) -> float:
    """Milliseconds since a moment of `time.perf_counter`."""
    return (time.perf_counter() - began) * _MS


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="agentdb_search",
        title="Search memories",
        description=(
            "Searches memories by meaning, filtered by tags (any of them) and metadata.\n"
            "Use it when you know what kind of memory you want; agentlens_recall looks everywhere "
            "and weighs words and dates, too.\n"
            "Returns the closest, each with its cosine. Superseded ones are left out.\n"
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
            "Deletes memories for good, by id or by filters; with dry_run it only says which.\n"
            "Use it when asked to; outdated ones are better superseded, with agentdb_insert.\n"
            "Returns what was deleted.\n"
            'Example: {"filters": {"tags": ["temporary"], "min_age_days": 30}, "dry_run": true}.'
        ),
        arguments=DeleteArguments,
        output=DeleteOutput,
        handler=delete,
        destructive=True,
    ),
)
