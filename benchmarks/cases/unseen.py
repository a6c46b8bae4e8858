"""A tenant that a server on PostgreSQL has never seen: the first answer, and the index."""

from __future__ import annotations

import statistics
import time

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.report import Row, in_time, milliseconds
from benchmarks.server import Server

FIRST_MS, BUILT_S = 300.0, 10.0


def rows(context: Context, url: str) -> list[Row]:
    """Have servers without anything on their disks asked, one after another, for the memories that
    are in a database."""
    first, busy, built, used = [], [], [], []
    for number in range(context.sizes.rounds + 1):  # The first has the pages read.
        context.say(f"postgres: a server that never saw the tenant, {number or 'to warm up'}")
        settings = {"database_url": url, "plain_keys": "true"}
        with Server(context.work / f"unseen-{number}", settings) as server:
            measured = _asked(context, server)
        if number:
            for figures, figure in zip((first, busy, built, used), measured, strict=True):
                figures.append(figure)
    answered, answering, ready, cpu = map(statistics.median, (first, busy, built, used))
    size = f"{context.sizes.memories:,} memories"
    how = f"median of {len(first)} servers that just started, PostgreSQL's pages in memory"
    return [
        Row(
            f"first Recall on a server that never saw the tenant, {size}",
            f"≤ {FIRST_MS:.0f} ms",
            f"{milliseconds(answered)}, at most {milliseconds(max(first))};"
            f" {milliseconds(answering)} of the server's processor time",
            in_time(answered, FIRST_MS),
            f"{how}; from PostgreSQL's rows, marked partial, with the connection's making",
            {"p50_ms": answered, "max_ms": max(first), "cpu_ms": answering},
        ),
        Row(
            f"its index built, {size}",
            f"≤ {BUILT_S:.0f} s",
            f"{ready:.1f} s after the question, at most {max(built):.1f} s; {cpu:.1f} s of its"
            " processor time",
            in_time(ready, BUILT_S),
            f"{how}; nobody else asks meanwhile; the graph follows",
            {"p50_s": ready, "max_s": max(built), "cpu_s": cpu},
        ),
    ]


def _asked(context: Context, server: Server) -> tuple[float, float, float, float]:
    """Return the milliseconds until the first answer and those of processor time; the seconds until
    there is an index and those of processor time."""
    client = server.tenant(memories.TENANT, create=False)
    before, start = server.cpu_s(), time.perf_counter()
    answer = client.recall(context.fresh_questions(1)[0])
    answered, busy = time.perf_counter() - start, server.cpu_s() - before
    if not (answer.partial and answer.results):
        raise AssertionError("the first answer was not from PostgreSQL's rows")
    client.get_stats()  # Answered once there is an index.
    built, used = time.perf_counter() - start, server.cpu_s() - before
    if client.recall(context.fresh_questions(1)[0]).partial:
        raise AssertionError("there is no index yet")
    return answered * 1000, busy * 1000, built, used
