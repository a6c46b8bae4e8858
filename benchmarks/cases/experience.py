"""Memories, patterns, episodes and skills: what AgentDB's tables ask of its tools."""

from __future__ import annotations

import itertools
import time
from typing import Any

from mneme import MnemeClient

from benchmarks.cases import effects
from benchmarks.cases.timing import timed
from benchmarks.context import Context
from benchmarks.memories import wait_until_embedded
from benchmarks.report import (
    NO_BUDGET,
    Row,
    at_most,
    at_rate,
    both,
    in_time,
    megabytes,
    milliseconds,
)
from benchmarks.server import Server
from benchmarks.texts import events, questions

_DISTINCT = 20_000
"""Different texts; beyond that they come again, as rows of a data set do."""
_SKILLS = 1_000
_BATCH = 1_000
_numbers = itertools.count()


def run(context: Context) -> list[Row]:
    """Measure in a tenant with many memories, and in one with a tenth of them."""
    count = context.sizes.memories
    with Server(context.work / "experience") as server:
        large, small = server.tenant("experience"), server.tenant("experience-tenth")
        context.say(f"experience: storing {count:,} memories")
        rows = [_inserted(large, count), _index(large, count)]
        _insert(small, count // 10)
        rows += _memories(context, large)
        rows += _patterns(context, small, count // 10, regex_ms=20.0)
        rows += _patterns(context, large, count, regex_ms=250.0)
        context.say(f"experience: storing {count:,} episodes")
        rows += _episodes(context, large, count)
        rows += effects.edges(context, large)
        rows += effects.certificates(context, large)
        rows += effects.discovery(context, server.tenant("experience-discovery"))
        rows += _whole(context, large)
    return rows


def _insert(client: MnemeClient, count: int) -> Any:
    made = [one.text for one in events(min(count, _DISTINCT))]
    memories = (
        {
            "id": f"m{number}",
            "text": made[number % len(made)] + (" ID-12345-X" if number % 5_000 == 0 else ""),
            "tags": [f"tag-{number % 50}"],
            "metadata": {"n": number, "priority": "high" if number % 7 == 0 else "low"},
            "keep_copy": True,
        }
        for number in range(count)
    )
    *_, last = client.create_memories(memories)  # type: ignore[arg-type]
    return last


def _inserted(client: MnemeClient, count: int) -> Row:
    began = time.perf_counter()
    figures = _insert(client, count).figures
    took_s = time.perf_counter() - began
    misses = figures.cache_misses
    return Row(
        f"CreateMemories, {count:,} memories in one stream",
        "",
        f"{count / took_s:,.0f}/s, {misses:,} of them with a new text",
        NO_BUDGET,
        "tags and metadata with each",
        {"per_second": count / took_s, "misses": misses},
    )


def _index(client: MnemeClient, count: int) -> Row:
    """Wait until all are embedded, and tell what the index takes."""
    wait_until_embedded(client, lambda _: None)
    stats = client.get_memory_stats()
    return Row(
        f"The vector index of {count:,} memories, in memory",
        "≤ 70 MB",
        megabytes(stats.index.vector_bytes),
        at_most(stats.index.vector_bytes / 1_000_000, 70),
        f"with words and attributes {megabytes(stats.index.memory_bytes)}",
        {"bytes": stats.index.vector_bytes, "folder_bytes": stats.database.folder_bytes},
    )


def _memories(context: Context, client: MnemeClient) -> list[Row]:
    some = max(10, context.sizes.calls // 10)
    asked = questions(context.sizes.calls)

    def fresh(size: int) -> list[dict[str, Any]]:
        start = next(_numbers) * size
        return [{"text": f"{one.text} {start}"} for one in events(size, seed=50 + start)]

    def thousand(new: list[dict[str, Any]]) -> None:
        for _ in client.create_memories(new):  # type: ignore[arg-type]
            pass

    def resting(number: int) -> None:
        client.delete_memories(memory_ids=[f"m{number}"], cascade=True)

    count = context.sizes.memories
    search = context.rounds(client.search_memories, lambda: asked, warm_up=asked[:3])
    flood = context.rounds(client.search_memories, lambda: asked, in_flight=8, warm_up=asked[:3])
    rows = [
        timed(context, "OpenMemory", 50, lambda _: client.open_memory(), lambda: range(some)),
        timed(
            context, "CreateMemory", 50, lambda one: client.create_memory(one["text"]),
            lambda: fresh(some), "a new text each time, embedded",
        ),
        Row(
            f"SearchMemories, {count:,} memories",
            "p95 ≤ 10 ms; ≥ 200/s",
            f"p95 {milliseconds(search.p95_ms)}; {flood.per_second:,.0f}/s with 8 in flight",
            both(in_time(search.p95_ms, 10), at_rate(flood.per_second, 200)),
            "a new question each time, embedded",
            search.figures(),
        ),
        timed(
            context, "DeleteMemories with cascade, one memory", 100, resting,
            lambda: [next(_numbers) + 1_000 for _ in range(some)],
        ),
    ]  # fmt: skip
    batch = context.rounds(thousand, lambda: [fresh(_BATCH)])
    per_second = _BATCH / batch.p50_ms * 1_000
    rows.append(
        Row(
            f"CreateMemories, {_BATCH:,} new texts",
            "≤ 2,500 ms; ≥ 400/s",
            f"{milliseconds(batch.p95_ms)}, {per_second:,.0f}/s",
            both(in_time(batch.p95_ms, 2_500), at_rate(per_second, 400)),
            "embedded and searchable",
            batch.figures(),
        )
    )
    return rows


def _patterns(context: Context, client: MnemeClient, count: int, *, regex_ms: float) -> list[Row]:
    some = max(5, context.sizes.calls // 20)
    context.say(f"experience: patterns in {count:,} memories")
    client.create_pattern("ids", regex={"expression": r"ID-\d{5}-[A-Z]"})
    client.create_pattern("meaning", semantic={"text": "something failed and was tried again"})
    schema = {"properties": {"priority": {"const": "high"}}, "required": ["priority"]}
    client.create_pattern("urgent", structural={"schema": schema})

    def search(name: str) -> None:
        client.match_pattern(name)

    where = f"{count:,} memories"
    return [
        timed(
            context, f"MatchPattern, a regular expression, {where}", regex_ms, search,
            lambda: ["ids"] * some,
        ),
        timed(
            context, f"MatchPattern, a structure, {where}", 1_000, search,
            lambda: ["urgent"] * some, "metadata that differ in each memory",
        ),
        timed(
            context, f"MatchPattern, a meaning, {where}", 20, search, lambda: ["meaning"] * some
        ),
        timed(
            context, f"CreatePattern, {where}", 30,
            lambda n: client.create_pattern(f"p{n}", regex={"expression": f"x{n}"}),
            lambda: [next(_numbers) for _ in range(some)],
        ),
        timed(
            context, f"ListPatternStats, {where}", 10,
            lambda _: client.list_pattern_stats(name="ids"), lambda: range(some),
        ),
    ]  # fmt: skip


def _episodes(context: Context, client: MnemeClient, count: int) -> list[Row]:
    made = [one.text for one in events(min(count, _DISTINCT), seed=9)]
    tasks = [made[number % len(made)] for number in range(count)]
    for start in range(0, count, 500):
        part = tasks[start : start + 500]
        client.import_episodes([{"task": task, "reward": 1.0, "success": True} for task in part])
    for number in range(_SKILLS):
        client.create_skill(f"skill {number}", description=tasks[number])
    asked, some = questions(context.sizes.calls, seed=7), max(10, context.sizes.calls // 10)

    def new() -> list[str]:
        return [f"{tasks[0]} {next(_numbers)}" for _ in range(some)]

    return [
        timed(
            context, "CreateEpisode", 60,
            lambda task: client.create_episode(task=task, success=True), new, "embedded",
        ),
        timed(
            context, f"SearchEpisodes, {count:,} episodes", 15,
            client.search_episodes, lambda: asked,
            "with the summary of critiques",
        ),
        timed(
            context, "CreateSkill", 40, lambda task: client.create_skill(task[-200:]), new,
            "embedded",
        ),
        timed(
            context, "SearchSkills", 12, client.search_skills, lambda: asked
        ),
    ]  # fmt: skip


def _whole(context: Context, client: MnemeClient) -> list[Row]:
    some = max(5, context.sizes.calls // 20)
    everything = {"include_distribution": True, "include_quality": True}
    return [
        timed(
            context, "MemoryService.GetMemoryStats", 50, lambda _: client.get_memory_stats(),
            lambda: range(some),
        ),
        timed(
            context, "MemoryService.GetMemoryStats, distribution and quality", 100,
            lambda _: client.get_memory_stats(**everything), lambda: range(some),
        ),
        timed(
            context, "ClearCache with vacuum", 3_000, lambda _: client.clear_cache(vacuum=True),
            lambda: range(1),
        ),
    ]  # fmt: skip
