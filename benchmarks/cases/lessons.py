"""Lessons: saved, found at once, archived."""

from __future__ import annotations

import time

from mneme import MnemeClient

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.measure import Round, Rounds
from benchmarks.report import Row, in_time, milliseconds
from benchmarks.server import Server
from benchmarks.texts import lessons

FOUND_MS, DELETE_MS, STATS_MS = 30.0, 100.0, 50.0


def run(context: Context) -> list[Row]:
    """Measure in a tenant that holds lessons only, and in one with many memories."""
    data = memories.copy(context.memories, context.work / "lessons")
    with Server(data) as server:
        small = server.tenant("lessons")
        large = server.tenant(memories.TENANT, create=False)
        rows = []
        for client, where in (
            (small, "a new tenant"),
            (large, f"a tenant of {context.sizes.memories:,} memories"),
        ):
            context.say(f"lessons: in {where}")
            rows += _created_and_found(context, client, where)
            rows.append(_deleted(context, client, where))
        context.say("stats")
        stats = context.rounds(
            lambda _: large.get_stats(), lambda: range(context.sizes.calls // 3), warm_up=[0]
        )
        rows.append(
            Row(
                f"GetStats, {context.sizes.memories:,} memories",
                f"p95 ≤ {STATS_MS:.0f} ms",
                f"p50 {milliseconds(stats.p50_ms)}, p95 {milliseconds(stats.p95_ms)}",
                in_time(stats.p95_ms, STATS_MS),
                "counts and size on disk",
                stats.figures(),
            )
        )
    return rows


def _created_and_found(context: Context, client: MnemeClient, where: str) -> list[Row]:
    count = max(10, context.sizes.calls // 5)
    created: list[Round] = []
    searched: list[Round] = []
    together: list[Round] = []
    for number in range(context.sizes.rounds + 1):  # The first warms up.
        three = _one_round(client, lessons(count, seed=100 + number))
        if number:
            for rounds, times in zip((created, searched, together), three, strict=True):
                rounds.append(Round(times, sum(times)))
    total = Rounds(together)
    parts = [f"{n} {milliseconds(Rounds(r).p95_ms)}"
             for n, r in (("create", created), ("search", searched))]  # fmt: skip
    return [
        Row(
            f"CreateLesson, then SearchLessons, in {where}",
            f"found at once; p95 ≤ {FOUND_MS:.0f} ms",
            f"p50 {milliseconds(total.p50_ms)}, p95 {milliseconds(total.p95_ms)}, both calls"
            f" together; p95 {', '.join(parts)}",
            in_time(total.p95_ms, FOUND_MS),
            f"{len(together)} rounds of {count}; each lesson was among the first 10",
            total.figures(),
        )
    ]


def _one_round(
    client: MnemeClient, made: list[tuple[str, str]]
) -> tuple[list[float], list[float], list[float]]:
    created, searched, together = [], [], []
    for title, content in made:
        start = time.perf_counter()
        lesson_id = client.create_lesson(title, content).lesson.id
        between = time.perf_counter()
        found = client.search_lessons(title).results
        end = time.perf_counter()
        if lesson_id not in [result.lesson.id for result in found]:
            raise AssertionError(f"the lesson {title!r} was not found right after it was saved")
        created.append(between - start)
        searched.append(end - between)
        together.append(end - start)
    return created, searched, together


def _deleted(context: Context, client: MnemeClient, where: str) -> Row:
    count = context.sizes.calls // 5
    ids = iter([lesson.id for lesson in client.iter_lessons(page_size=1_000)])
    deleted = context.rounds(
        client.archive_lesson, lambda: [next(ids) for _ in range(count)], warm_up=[next(ids)]
    )
    return Row(
        f"ArchiveLesson, in {where}",
        f"p95 ≤ {DELETE_MS:.0f} ms",
        f"p50 {milliseconds(deleted.p50_ms)}, p95 {milliseconds(deleted.p95_ms)}",
        in_time(deleted.p95_ms, DELETE_MS),
        f"{len(deleted.rounds)} rounds of {count}",
        deleted.figures(),
    )
