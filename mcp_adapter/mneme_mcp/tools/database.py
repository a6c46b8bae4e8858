"""`agentdb_init`, `agentdb_stats`, `db_stats`, `agentdb_clear_cache`: memory as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.tool import Call, Reply, ToolSpec

_MB = 2**20


@offers(
    "open_memory",
    model="The embedding model that you expect.",
    dimension="The dimension that you expect.",
    reset="Erase everything, after a backup. Needs scope admin.",
    confirm_tenant=Offer("With reset: the tenant's id.", at="confirm_tenant_id"),
)
class InitArguments(SnakeArguments):
    """What the memory should be."""

    synonyms = {"confirm": "confirm_tenant", "confirm_tenant_id": "confirm_tenant"}


class InitStats(SnakeOutput):
    """What is there."""

    dimension: int
    model: str
    hnsw_enabled: bool
    wal_mode: bool
    total_vectors: int
    total_memories: int
    total_episodes: int
    total_skills: int
    db_size_mb: float
    startup_time_ms: float


class InitOutput(SnakeOutput):
    """The memory, which is ready."""

    db_path: str
    stats: InitStats
    schema_version: str
    capabilities: list[str]
    backup: str = ""


async def init(call: Call, given: InitArguments) -> Reply:
    """Answer `agentdb_init`."""
    answer = to_dict(await call.client.open_memory(**given.request()))
    database, counts, embeddings = answer["database"], answer["counts"], answer["embeddings"]
    ready = InitOutput(
        db_path=database["path"],
        stats=InitStats(
            dimension=embeddings["dimension"],
            model=embeddings["model"],
            hnsw_enabled=answer["index"]["kind"] == "hnsw",
            wal_mode=database["wal_mode"],
            total_vectors=counts["vectors"],
            total_memories=counts["memories"],
            total_episodes=counts["episodes"],
            total_skills=counts["skills"],
            db_size_mb=database["size_bytes"] / _MB,
            startup_time_ms=answer["took_ms"],
        ),
        schema_version=database["schema_version"],
        capabilities=answer["capabilities"],
        backup=answer["backup"],
    )
    text = f"Ready: {counts['memories']} memories, {counts['episodes']} episodes."
    if ready.backup:
        text = f"Everything was erased; the backup {ready.backup} has what was there."
    return Reply(text, ready)


@offers(
    "get_memory_stats",
    include_distribution="Also say how often labels and metadata keys occur.",
    include_quality="Also say the average reward, success rate and confidence.",
)
class StatsArguments(SnakeArguments):
    """What to tell besides."""


class Database(SnakeOutput):
    """Where it is."""

    path: str
    size_mb: float
    wal_mode: bool
    schema_version: str


class Counts(SnakeOutput):
    """What there is."""

    total_vectors: int
    total_memories: int
    total_episodes: int
    total_skills: int
    total_causal_edges: int
    total_certificates: int


class Embeddings(SnakeOutput):
    """How texts become vectors."""

    model: str
    dimension: int
    cache_size: int
    cache_hit_rate: float | None = None


class Index(SnakeOutput):
    """How vectors are searched."""

    hnsw_enabled: bool
    index_size_mb: float
    avg_search_ms: float | None = None


class Quality(SnakeOutput):
    """How well things went, on average."""

    avg_episode_reward: float | None = None
    avg_skill_success_rate: float | None = None
    avg_causal_confidence: float | None = None


class Distribution(SnakeOutput):
    """How often labels and keys of metadata occur, the most frequent."""

    tags: dict[str, int] = {}
    metadata_keys: dict[str, int] = {}


class StatsOutput(SnakeOutput):
    """What the memory holds and takes."""

    database: Database
    counts: Counts
    embeddings: Embeddings
    index: Index
    quality: Quality | None = None
    distribution: Distribution | None = None


async def stats(call: Call, given: StatsArguments) -> Reply:
    """Answer `agentdb_stats`."""
    answer = to_dict(await call.client.get_memory_stats(**given.request()))
    database, counts, embeddings = answer["database"], answer["counts"], answer["embeddings"]
    index, told = answer["index"], answer.get("distribution")
    totals = {f"total_{name}": count for name, count in counts.items()}
    found = StatsOutput(
        database=Database(**database, size_mb=database["size_bytes"] / _MB),
        counts=Counts.model_validate(totals),
        embeddings=Embeddings.model_validate(embeddings),
        index=Index(
            hnsw_enabled=index["kind"] == "hnsw",
            index_size_mb=index["memory_bytes"] / _MB,
            avg_search_ms=index.get("average_search_ms"),
        ),
        quality=_quality(answer) if given.include_quality else None,
        distribution=None
        if told is None
        else Distribution(
            tags=_counted(told["tags"]), metadata_keys=_counted(told["metadata_keys"])
        ),
    )
    said = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count)
    return Reply(f"Stored: {said}." if said else "Nothing is stored yet.", found)


def _quality(answer: Mapping[str, Any]) -> Quality:
    told = answer["quality"]
    return Quality(
        avg_episode_reward=told.get("average_episode_reward"),
        avg_skill_success_rate=told.get("average_skill_success_rate"),
        avg_causal_confidence=told.get("average_causal_confidence"),
    )


def _counted(named: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {one["name"]: one["count"] for one in named}


class NoArguments(SnakeArguments):
    """Nothing to ask for."""


class DbStatsOutput(SnakeOutput):
    """Counts of every kind, and averages."""

    total_vectors: int
    total_memories: int
    total_episodes: int
    total_skills: int
    total_causal_edges: int
    total_certificates: int
    total_learning_sessions: int
    total_experiences: int
    total_patterns: int
    cache_size: int
    avg_episode_reward: float | None = None
    avg_skill_success: float | None = None
    avg_causal_confidence: float | None = None


async def db_stats(call: Call, _: NoArguments) -> Reply:
    """Answer `db_stats`."""
    answer = to_dict(await call.client.get_memory_stats(include_quality=True))
    quality = _quality(answer)
    totals = {f"total_{name}": count for name, count in answer["counts"].items()}
    found = DbStatsOutput(
        **{name: count for name, count in totals.items() if name in DbStatsOutput.model_fields},
        cache_size=answer["embeddings"]["cache_size"],
        avg_episode_reward=quality.avg_episode_reward,
        avg_skill_success=quality.avg_skill_success_rate,
        avg_causal_confidence=quality.avg_causal_confidence,
    )
    lines = [f"{name}: {value}" for name, value in found.dump().items()]
    return Reply("\n".join(lines), found)


@offers(
    "clear_cache",
    cache_types=Offer("Caches to clear.", at="caches", default=["embeddings"]),
    vacuum="Also free the space that deleted rows took.",
    older_than_days="Only what is older than this many days.",
)
class ClearArguments(SnakeArguments):
    """What to clear."""

    synonyms = {"caches": "cache_types"}


class ClearedCounts(SnakeOutput):
    """Entries that were cleared."""

    embeddings: int
    search: int
    patterns: int


class ClearOutput(SnakeOutput):
    """What was cleared."""

    cleared: ClearedCounts
    space_reclaimed_mb: float
    vacuum_run: bool
    latency_ms: float


async def clear(call: Call, given: ClearArguments) -> Reply:
    """Answer `agentdb_clear_cache`."""
    answer = to_dict(
        await call.client.clear_cache(
            **given.request() | {"caches": list(dict.fromkeys(given.cache_types))}
        )
    )
    counts = dict.fromkeys(ClearedCounts.model_fields, 0)
    counts |= {one["cache"]: one["count"] for one in answer["cleared"]}
    done = ClearOutput(
        cleared=ClearedCounts(**counts),
        space_reclaimed_mb=answer["reclaimed_bytes"] / _MB,
        vacuum_run=answer["vacuumed"],
        latency_ms=answer["took_ms"],
    )
    said = ", ".join(f"{name} {count}" for name, count in counts.items())
    return Reply(f"Cleared: {said}. {done.space_reclaimed_mb:.1f} MB freed.", done)


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="agentdb_init",
        title="Open the memory",
        description=(
            "Opens the memory, as any other tool does too, and says what is there.\n"
            "Use it to see what you have, or to check the embedding model.\n"
            "Returns sizes, counts and what the server offers. reset erases everything: only when "
            "asked to.\n"
            "Example: {}."
        ),
        arguments=InitArguments,
        output=InitOutput,
        handler=init,
        destructive=True,
    ),
    ToolSpec(
        name="agentdb_stats",
        title="Statistics",
        description=(
            "Says what the memory holds, how much space it takes, and how fast it is searched.\n"
            "Use it to see whether anything is there at all.\n"
            "Returns counts, sizes and measured times.\n"
            'Example: {"include_quality": true}.'
        ),
        arguments=StatsArguments,
        output=StatsOutput,
        handler=stats,
        read_only=True,
    ),
    ToolSpec(
        name="db_stats",
        title="Counts",
        description=(
            "Counts what the memory holds, by kind.\n"
            "Use it for an overview.\n"
            "Returns counts, and the average reward, success rate and confidence.\n"
            "Example: {}."
        ),
        arguments=NoArguments,
        output=DbStatsOutput,
        handler=db_stats,
        read_only=True,
    ),
    ToolSpec(
        name="agentdb_clear_cache",
        title="Clear caches",
        description=(
            "Clears what is kept only for speed; nothing that is stored is lost.\n"
            "Use it when asked to; with vacuum it also frees the space that deleted memories "
            "took.\n"
            "Returns what was cleared, and the space that was freed.\n"
            'Example: {"cache_types": ["embeddings"], "vacuum": true}.'
        ),
        arguments=ClearArguments,
        output=ClearOutput,
        handler=clear,
    ),
)
