"""Start-up, memory and disk."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import memories
from benchmarks.context import Context
from benchmarks.report import NO_BUDGET, Row, at_most, in_time, megabytes
from benchmarks.server import Server

START_S, IDLE_MB, FULL_MB = 2.0, 300.0, 450.0
_RECALLS = 1_000
_LINES = (["--version"], ["--help"])
"""What is asked of the command line: they need no server."""


def run(context: Context) -> list[Row]:
    """Measure an empty server, and one with many memories."""
    context.say("footprint: idle")
    with Server(context.work / "idle") as server:
        server.tenant("idle").get_stats()
        idle = server.memory()
    data = memories.copy(context.memories, context.work / "footprint")
    size = f"{context.sizes.memories:,} memories"
    serving, answering, opened, used = _started(context, data)
    start, first = statistics.median(serving), statistics.median(answering)
    return [
        Row(
            f"start-up, {size}",
            f"≤ {START_S:.0f} s",
            f"{start:.2f} s to serving, {first:.2f} s to the first Recall's answer",
            in_time(first, START_S),
            f"median of {len(serving)}; files in the page cache; judged by the first answer",
            {"serving_s": start, "first_recall_s": first},
        ),
        _new_folder(context),
        _command_line(context),
        _memory("memory, idle", idle, IDLE_MB, "an open tenant without memories"),
        _memory(f"memory, {size}", opened, FULL_MB, "after the first Recall"),
        _memory(f"memory, {size}, used", used, FULL_MB, f"after {_RECALLS:,} recalls"),
        _disk(context, data / "tenants" / memories.TENANT),
    ]


def _new_folder(context: Context) -> Row:
    """Measure a start in a folder that is not there, as whoever uses Mneme first waits for it."""
    serving, answering = [], []
    for number in range(context.sizes.rounds):
        context.say(f"footprint: new folder {number + 1}")
        server = Server(context.work / f"new-{number}")
        try:
            server.start()
            serving.append(server.cpu_s())
            client = server.tenant("first")
            client.remember("The first memory of this folder.")
            if not client.recall("What is the first memory?").results:
                raise AssertionError("nothing was recalled")
            answering.append(server.cpu_s())
        finally:
            server.stop()
    start, first = statistics.median(serving), statistics.median(answering)
    return Row(
        "start-up, a new folder",
        "",
        f"{start:.2f} s of processor time to serving,"
        f" {first:.2f} s until a first memory was stored and recalled",
        NO_BUDGET,
        f"median of {len(serving)}",
        {"serving_cpu_s": start, "first_recall_cpu_s": first},
    )


def _command_line(context: Context) -> Row:
    """Measure what scripts and hooks wait for before anything is done."""
    context.say("footprint: command line")
    used = {line[0]: _processor_time(line, context.sizes.rounds) for line in _LINES}
    return Row(
        "command line",
        "",
        ", ".join(f"{seconds:.2f} s for `mneme {line}`" for line, seconds in used.items()),
        NO_BUDGET,
        f"processor time, median of {context.sizes.rounds}",
        {f"{line.strip('-')}_cpu_s": seconds for line, seconds in used.items()},
    )


def _processor_time(line: Sequence[str], repetitions: int) -> float:
    times = []
    for _ in range(repetitions + 1):  # The first may write bytecode.
        before = _of_children()
        subprocess.run(
            [sys.executable, "-m", "mneme", *line], stdout=subprocess.DEVNULL, check=True
        )
        times.append(_of_children() - before)
    return statistics.median(times[1:])


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _started(
    context: Context, data: Path
) -> tuple[list[float], list[float], dict[str, int], dict[str, int]]:
    serving, answering = [], []
    opened: dict[str, int] = {}
    used: dict[str, int] = {}
    repetitions = max(1, context.sizes.rounds - 2)
    for number in range(repetitions + 1):  # The first checks files that were just copied.
        context.say(f"footprint: start {number + 1}")
        server = Server(data)
        try:
            seconds = server.start()
            client = server.tenant(memories.TENANT, create=False)
            before = time.perf_counter()
            if not client.recall(context.fresh_questions(1)[0]).results:
                raise AssertionError("nothing was recalled")
            if number:
                serving.append(seconds)
                answering.append(seconds + time.perf_counter() - before)
            opened = server.memory()
            if number == repetitions:
                context.say("footprint: recalls")
                for question in context.fresh_questions(_RECALLS):
                    client.recall(question)
                used = server.memory()
        finally:
            server.stop()
    return serving, answering, opened, used


def _memory(what: str, memory: dict[str, int], budget_mb: float, how: str) -> Row:
    return Row(
        what=what,
        budget=f"≤ {budget_mb:.0f} MB",
        measured=f"{megabytes(memory['rss'])}, of it {megabytes(memory['anonymous'])} not files",
        verdict=at_most(memory["rss"] / 1e6, budget_mb),
        how=f"resident set of the server's process, {how}",
        figures=memory,
    )


def _disk(context: Context, folder: Path) -> Row:
    parts = {"database": 0, "vectors' index": 0, "words' index": 0}
    for file in folder.rglob("*"):
        if file.is_file():
            place = file.relative_to(folder).parts
            name = "words' index" if "lexical" in place else "vectors' index"
            name = name if place[0] == "index" else "database"
            parts[name] += file.stat().st_size
    total = sum(parts.values())
    return Row(
        what=f"disk, {context.sizes.memories:,} memories",
        budget="",
        measured=f"{megabytes(total)}: "
        + ", ".join(f"{name} {megabytes(size)}" for name, size in parts.items()),
        verdict=NO_BUDGET,
        how=f"built in {context.memories.seconds:.0f} s on {context.memories.built_at}",
        figures=parts,
    )
