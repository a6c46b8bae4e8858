"""How often Reflect and Discover say what is so, and what is not: `python -m benchmarks.truth`.

Records and worlds are made of which the truth is known. Printed is of how many something false is
said, by analysis, and how often the one thing that is so is found, beside a plain test of it at the
same level for as many tests.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.truth import worlds
from benchmarks.truth.judging import ANALYSES, SOUGHT, Verdict, judged, plainly
from benchmarks.truth.shapes import NOTHING, SOMETHING, Shape

HEAD = """\
# How often Reflect says what is not so

Records are made of which it is known what is true (`benchmarks/truth/shapes.py` says it of each),
every analysis is run on them, and everything that it claims with a q-value is held against that.
`make truth` writes this page, here with SEEDS={seeds}; without it, it makes 200 of each kind. The
tests do the same with fewer. What is promised of each analysis is something false in one record of
twenty at the most, in one of ten where days are like the days before them; of {seeds}
records a share is uncertain by up to {uncertain} points (twice its standard error at 50 %).
"""


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _what(shape: object) -> str:
    return " ".join((shape.__doc__ or "").split()).rstrip(".")


def _verdicts(pool: ProcessPoolExecutor, shape: Shape, seeds: int) -> Sequence[Verdict]:
    return list(pool.map(partial(judged, shape), range(seeds), chunksize=4))


def _false_rows(pool: ProcessPoolExecutor, shapes: Sequence[Shape], seeds: int) -> list[str]:
    rows = [
        _row(("record", *(one.name.lower() for one in ANALYSES), "any of the five")),
        _row("---" for _ in range(len(ANALYSES) + 2)),
    ]
    in_all = 0
    for shape in shapes:
        verdicts = _verdicts(pool, shape, seeds)
        counts = Counter(one for v in verdicts for one, false in v.false.items() if false)
        any_ = sum(any(v.false.values()) for v in verdicts)
        in_all += sum(counts.values())
        rows.append(_row((_what(shape), *(counts[one] for one in ANALYSES), any_)))
        print(rows[-1], flush=True)
    share = in_all / max(seeds * len(shapes) * len(ANALYSES), 1)
    return [
        "",
        "## Where there is nothing",
        "",
        f"Of {seeds} records of each kind, those with something false; over all kinds and analyses"
        f" {100 * share:.1f} %.",
        "",
        *rows,
    ]


def _power_rows(pool: ProcessPoolExecutor, shapes: Sequence[Shape], seeds: int) -> list[str]:
    rows = [_row(("record", "found", "by a plain test", "other claims")), _row(["---"] * 4)]
    for shape in shapes:
        verdicts = _verdicts(pool, shape, seeds)
        found = sum(v.found for v in verdicts) if shape.__name__ in SOUGHT else "–"
        plain = sum(v.plain for v in verdicts) if plainly(shape.__name__) else "–"
        others = sum(any(v.false.values()) for v in verdicts)
        rows.append(_row((_what(shape), found, plain, others)))
        print(rows[-1], flush=True)
    return [
        "",
        "## Where there is something",
        "",
        f"Of {seeds} records of each kind: in how many it is found, in how many a plain test finds"
        " it that is told where to look (Fisher's, Mantel and Haenszel's, Welch's or a correlation,"
        " for as many tests at the same level), and in how many any analysis claims something"
        " else.",
        "",
        *rows,
    ]


def _edges(world: worlds.World, seed: int) -> dict[tuple[str, str], float]:
    return worlds.edges(world(np.random.default_rng(seed), 400), seed)


def _discovery_rows(pool: ProcessPoolExecutor, seeds: int) -> list[str]:
    rows = [_row(("world", f"with an edge, of {seeds}", f"over 60 nights, of {seeds // 5}"))]
    rows.append(_row(["---"] * 3))
    for world in worlds.NULL:
        once = sum(map(bool, pool.map(partial(_edges, world), range(seeds), chunksize=4)))
        nights = sum(pool.map(partial(worlds.any_night, world), range(seeds // 5)))
        rows.append(_row((_what(world), once, nights)))
        print(rows[-1], flush=True)
    found = list(pool.map(partial(_edges, worlds.helps), range(seeds), chunksize=4))
    right = sum(one.get(("strategy:review", "success"), 0.0) > 0 for one in found)
    wrong = sum(one.get(("strategy:review", "success"), 0.0) < 0 for one in found)
    return [
        "",
        "## Discover",
        "",
        "Worlds of 400 episodes in which nothing that is decided before changes anything:",
        "",
        *rows,
        "",
        f"Where the strategy that hard tasks are tried with adds to their success, it is found in"
        f" {right} of {seeds} worlds, with the wrong sign in {wrong}.",
    ]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description="How often what is said is so.")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--shapes", nargs="*", default=[])
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    nothing, something = (
        [one for one in shapes if not given.shapes or one.__name__ in given.shapes]
        for shapes in (NOTHING, SOMETHING)
    )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor() as pool:
        lines = [
            *_false_rows(pool, nothing, given.seeds),
            *_power_rows(pool, something, given.seeds),
            *([] if given.shapes else _discovery_rows(pool, given.seeds)),
        ]
    if given.report:
        uncertain = round(100 / given.seeds**0.5)
        head = HEAD.format(seeds=given.seeds, uncertain=uncertain)
        given.report.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
