"""Measure the budgets and write the table: `make bench`, or `python -m benchmarks`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

if not __package__:  # Run as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from benchmarks.cases import (
    beside,
    ceiling,
    dashboard,
    embedding,
    experience,
    faults,
    filters,
    fleet,
    footprint,
    growth,
    http,
    jobs,
    learning,
    lessons,
    neighbours,
    otlp,
    postgres,
    proof,
    ranking,
    recall,
    recording,
    reflect,
    sessions,
    size,
    tenants,
    watches,
    writes,
)
from benchmarks.context import FULL, QUICK, Context
from benchmarks.machine import Load, facts
from benchmarks.ranking.files import add_options, files_of
from benchmarks.report import Row, as_json, as_markdown
from benchmarks.server import ROOT

_RESULTS = ROOT / "benchmarks" / "RESULTS.md"
_QUIET_CORES = 0.3
_STYLES = {"–": "dim", "met": "green", "**missed**": "bold red"}

CASES: dict[str, tuple[str, Callable[[Context], list[Row]]]] = {
    "ceiling": ("What gRPC gives", ceiling.run),
    "recall": ("Recall", recall.run),
    "http": ("Recall over HTTP", http.run),
    "beside": ("Recall beside HTTP", beside.run),
    "otlp": ("OpenTelemetry", otlp.run),
    "dashboard": ("The dashboard", dashboard.run),
    "ranking": ("What recall finds", ranking.run),
    "filters": ("Filters", filters.run),
    "recording": ("Recording", recording.run),
    "writes": ("Small writes", writes.run),
    "postgres": ("On PostgreSQL", postgres.run),
    "learning": ("Learning", learning.run),
    "embedding": ("Embedding", embedding.run),
    "lessons": ("Lessons and statistics", lessons.run),
    "experience": ("Memories, patterns, episodes, skills", experience.run),
    "proof": ("Proof", proof.run),
    "footprint": ("Start-up, memory, disk", footprint.run),
    "size": ("One large tenant", size.run),
    "tenants": ("Many tenants", tenants.run),
    "fleet": ("Many tenants on PostgreSQL", fleet.run),
    "neighbours": ("Neighbours", neighbours.run),
    "faults": ("Faults in an index", faults.run),
    "watches": ("Watches", watches.run),
    "jobs": ("Work beside the calls", jobs.run),
    "sessions": ("Context and session memory", sessions.run),
    "reflect": ("Reflect", reflect.run),
    "growth": ("How calls grow", growth.run),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code: 0 also when a budget is missed."""
    arguments = _arguments(argv)
    files = files_of(arguments)
    console = Console(stderr=True, highlight=False)
    started = time.monotonic()
    load = Load.start()
    known = facts(ROOT)
    sections: dict[str, list[Row]] = {}
    sizes = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="mneme-bench-") as work:
        context = Context(
            replace(
                sizes,
                size=arguments.size or sizes.size,
                tenants=arguments.tenants or sizes.tenants,
            ),
            work=Path(work),
            cache=ROOT / ".cache" / "bench",
            sets=files,
            say=lambda text: console.print(f"[dim]{time.monotonic() - started:5.0f} s[/] {text}"),
        )
        for name in arguments.only or CASES:
            title, run = CASES[name]
            sections[title] = run(context)
            if not arguments.json:
                _show(title, sections[title])
    others = load.others()
    disturbed = others > _QUIET_CORES
    pace = None if disturbed else _pace(sections)  # It would be theirs, not the machine's.
    known["other programs kept busy"] = f"{others:.1f} cores"
    known["took"] = f"{time.monotonic() - started:.0f} s"
    if arguments.json:
        print(json.dumps(as_json(sections, known, pace=pace), indent=2, ensure_ascii=False))
    output = arguments.output
    if output is None and not arguments.quick and not arguments.only:
        output = _RESULTS
    if output is not None:
        output.write_text(
            as_markdown(sections, known, disturbed=disturbed, pace=pace), encoding="utf-8"
        )
        console.print(f"written to {output}")
    return 0


def _pace(sections: Mapping[str, Sequence[Row]]) -> float | None:
    """Return the machine's pace; None if the ceiling was not measured."""
    title, _ = CASES["ceiling"]
    return ceiling.pace(sections[title]) if title in sections else None


def _show(title: str, rows: Sequence[Row]) -> None:
    table = Table(title=title, title_justify="left", expand=True)
    for heading in ("what", "budget", "measured", "verdict"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        words = row.verdict.words()
        verdict = f"[{_STYLES[words]}]{words.strip('*')}[/]"
        table.add_row(row.what, row.budget or "–", row.measured, verdict)
    Console(highlight=False).print(table)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--only", action="append", choices=CASES, metavar="NAME",
        help=f"only this, may be repeated: {', '.join(CASES)}",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument(
        "--size", type=int, metavar="N",
        help="memories of the large tenant; default: 100000. A million takes an hour",
    )  # fmt: skip
    parser.add_argument(
        "--tenants", type=int, metavar="N",
        help="how many there are, where there are many; default: 500."
        " Ten thousand take half an hour",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--output", type=Path, help="the Markdown file; default: benchmarks/RESULTS.md of full runs"
    )
    add_options(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
