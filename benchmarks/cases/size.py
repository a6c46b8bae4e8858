"""A tenant with very many memories: how it starts, what it costs to ask, to filter and to add."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from benchmarks import large
from benchmarks.cases import filters
from benchmarks.context import Context
from benchmarks.measure import Rounds
from benchmarks.memories import TENANT
from benchmarks.report import NO_BUDGET, Row, at_most, in_time, megabytes, milliseconds
from benchmarks.server import Server

START_S, P95_MS, RSS_MB = 3.0, 20.0, 2_000.0
_LATE = 1_000
"""Memories recorded just before a server is killed."""


def run(context: Context) -> list[Row]:
    """Measure a tenant of `--size` memories."""
    count = context.sizes.size
    built = large.ensure(context.cache, count, context.say)
    data = context.work / "size"
    shutil.copytree(built.folder, data)
    _start(data)  # Files that were just copied are checked, and lie in the page cache from now on.
    clean = _start(data)
    killed = _start(data, after=_kill)
    rows = [
        _started(count, "it was stopped", clean),
        _started(count, f"it was killed, {_LATE:,} memories after it was opened", killed),
    ]
    with Server(data) as server:
        client = server.tenant(TENANT, create=False)
        asked: dict[str, dict[str, Any]] = {"no filter": {}}
        for agent, one_in in large.AGENTS.items():
            asked[f"an agent that one in {one_in} is of"] = {"agent_id": agent}
        for name, filter_ in asked.items():
            context.say(f"size: {name}")

            def ask(question: str, filter_: dict[str, Any] = filter_) -> None:
                client.recall(question, **filter_)

            times = context.rounds(
                ask, lambda: context.fresh_questions(context.sizes.calls), cpu_s=server.cpu_s
            )
            rows.append(_recalled(count, name, times))
        memory = server.memory()
    rows.append(
        Row(
            f"memory, {count:,} memories",
            f"≤ {RSS_MB:,.0f} MB",
            f"{megabytes(memory['rss'])}; at most {megabytes(built.peak_rss)} while it was filled",
            at_most(max(memory["rss"], built.peak_rss) / 1e6, RSS_MB),
            "resident set of the server's process",
            {**memory, "peak_rss": built.peak_rss},
        )
    )
    first, *_, last = [*built.upkeep_s, built.upkeep_s[-1]]
    rows.append(
        Row(
            f"upkeep of the index, {count:,} memories",
            "",
            f"{first:.0f} s for the first 100,000, {last:.0f} s for the last",
            NO_BUDGET,
            f"processor time in the background; filled on {built.built_at}",
            {f"upkeep_s_{part}": spent for part, spent in enumerate(built.upkeep_s, 1)},
        )
    )
    return rows + filters.measured(context, data, count)


def _start(data: Path, after: Any = Server.stop) -> tuple[float, float]:
    """Return the seconds from the process's start to the first answer, and its processor time until
    then; after a kill, those of a server that finds what it left."""
    server = Server(data)
    try:
        seconds = server.start()
        client = server.tenant(TENANT, create=False)
        before = time.perf_counter()
        if not client.recall("why did the deploy script fail").results:
            raise AssertionError("nothing was recalled")
        seconds += time.perf_counter() - before
        cpu_s = server.cpu_s()
        if after is _kill:
            _kill(server, client)
            return _start(data)
    finally:
        server.stop()
    return seconds, cpu_s


def _kill(server: Server, client: Any) -> None:
    text = "The deploy script failed once more, just before the lights went out"
    client.record_events(
        [
            {"session_id": "the end", "event_type": "message", "text": f"{text}, {place}"}
            for place in range(_LATE)
        ]
    )
    server.kill()


def _started(count: int, how: str, spent: tuple[float, float]) -> Row:
    seconds, cpu_s = spent
    return Row(
        f"start to the first answer, {count:,} memories",
        f"≤ {START_S:.0f} s",
        f"{seconds:.2f} s",
        in_time(seconds, START_S),
        f"after {how}; files in the page cache; {cpu_s:.1f} s of processor time",
        {"seconds": seconds, "cpu_s": cpu_s},
    )


def _recalled(count: int, name: str, times: Rounds) -> Row:
    return Row(
        f"Recall, {count:,} memories, {name}",
        f"p95 ≤ {P95_MS:.0f} ms",
        f"p50 {milliseconds(times.p50_ms)}, p95 {milliseconds(times.p95_ms)}",
        in_time(times.p95_ms, P95_MS),
        f"new questions, hybrid; {times.cpu_ms or 0.0:.1f} ms of the server's processor a call",
        times.figures(),
    )
