"""How much of what the server does its tests hold: small seeded changes of its code, each tried.

    python scripts/mutants.py choose --seed 1 --count 300
    python scripts/mutants.py cover --tree TREE
    python scripts/mutants.py run --column NAME --tree TREE
    python scripts/mutants.py report

A TREE is a checkout that is set up and that nobody works in: files of its server are changed while
tests run there, and put back. With several `--tree` there are as many jobs. What was stopped goes
on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shlex
import signal
import subprocess
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from mutanttrees import Covering, Tree, Warm, covered, written_files
from mutating import MODULE, Edit, Mutant, Source, changes, find
from pages import ROOT

KEPT = ROOT / "benchmarks" / "mutants"
MUTANTS, RESULTS = KEPT / "mutants.jsonl", KEPT / "results.jsonl"
EQUIVALENT, REPORT = KEPT / "equivalent.toml", KEPT / "report.md"
COVER = ROOT / ".cache" / "mutants" / "cover.jsonl"

MOST_FILES = 40
LIMIT_S = 120.0

# What a run of tests says of a mutant.
STATUSES = {"passed": "survived", "failed": "killed", "timeout": "timeout", "error": "error"}
KILLED = ("killed", "timeout")

_HEAD = """\
# What the tests hold

Written by `scripts/mutants.py`, whose head says how. Each of {count} seeded changes of the
server's code, `mutants.jsonl`, is tried with the {most} quickest files of tests that run the
changed function, for {limit:.0f} seconds at most. It is killed when a test fails or does not end,
and does so once more when it is run alone. Changes that nobody can see stand in `equivalent.toml`,
each with the reason, and count in no share.
"""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file, which may be missing; one that was cut off was never written."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def append(path: Path, value: Mapping[str, Any]) -> None:
    """Write one more line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(value, ensure_ascii=False) + "\n")


def mutants() -> dict[str, Mutant]:
    """Return the chosen mutants by their ids."""
    return {line.pop("id"): Mutant(**line) for line in read(MUTANTS)}


def choose(texts: Mapping[str, bytes], seed: int, count: int) -> list[Mutant]:
    """Choose mutants of files: from each folder by the square root of its lines, of all kinds as
    often, and at most one in a function as long as there are others."""
    folders: dict[str, list[str]] = {}
    for file in sorted(texts):
        folders.setdefault(str(Path(file).parent), []).append(file)
    sizes = {
        folder: math.sqrt(sum(texts[file].count(b"\n") for file in files))
        for folder, files in folders.items()
    }
    chosen: list[Mutant] = []
    for folder, quota in _shares(sizes, count).items():
        sources = {file: Source(texts[file]) for file in folders[folder]}
        # A folder's own, so that what changes in one moves nothing in another.
        chosen += _choose_of(sources, quota, random.Random(f"{seed}:{folder}"))
    return sorted(chosen, key=lambda one: (one.file, one.line, one.named[1:]))


def _shares(sizes: Mapping[str, float], count: int) -> dict[str, int]:
    """Divide a count by sizes; what is left of rounding down goes to the largest remainders."""
    exact = {name: count * size / sum(sizes.values()) for name, size in sizes.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: count - sum(shares.values())]:
        shares[name] += 1
    return shares


def _choose_of(sources: Mapping[str, Source], quota: int, chance: random.Random) -> list[Mutant]:
    by_kind: dict[str, list[tuple[Mutant, Edit]]] = {}
    for file, source in sources.items():
        for mutant, edit in changes(file, source):
            by_kind.setdefault(mutant.kind, []).append((mutant, edit))
    for found in by_kind.values():
        chance.shuffle(found)
    chosen: list[Mutant] = []
    again: list[tuple[Mutant, Edit]] = []
    used: set[tuple[str, str]] = set()
    while len(chosen) < quota and (by_kind or again):
        if not by_kind:
            mutant, edit = again.pop()
        else:
            kind = chance.choice(sorted(by_kind))
            mutant, edit = by_kind[kind].pop()
            if not by_kind[kind]:
                del by_kind[kind]
            if (mutant.file, mutant.function) in used:
                again.append((mutant, edit))
                continue
        if sources[mutant.file].makes_another(edit):
            chosen.append(mutant)
            used.add((mutant.file, mutant.function))
    return chosen


def choose_mutants(given: argparse.Namespace) -> None:
    """Choose the mutants and write them."""
    texts = {file: (ROOT / file).read_bytes() for file in written_files(ROOT)}
    given.out.unlink(missing_ok=True)
    for number, mutant in enumerate(choose(texts, given.seed, given.count), 1):
        append(given.out, {"id": f"m{number:03}"} | asdict(mutant))


def taken(waiting: SimpleQueue[str]) -> str | None:
    """Take the next thing to do, if there is one."""
    try:
        return waiting.get_nowait()
    except Empty:
        return None


def in_trees(
    given: argparse.Namespace, todo: Sequence[str], work: Callable[[Tree, SimpleQueue[str]], None]
) -> None:
    """Have each tree take from what there is to do, until there is no more or it is time."""
    waiting: SimpleQueue[str] = SimpleQueue()
    for one in todo:
        waiting.put(one)

    def stop(*_: object) -> None:
        while taken(waiting):
            pass

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    timer = threading.Timer(given.minutes * 60, stop)
    timer.daemon = True
    timer.start()
    with ThreadPoolExecutor(len(given.tree)) as pool:
        for done in [pool.submit(work, Tree(tree), waiting) for tree in given.tree]:
            done.result()
    timer.cancel()


def cover_tests(given: argparse.Namespace) -> None:
    """Note which functions each file of tests runs, and how long it takes."""
    done = {line["test"] for line in read(given.cover)}
    root = given.tree[0].resolve()
    wanted = [root / one for one in given.tests]
    found = [path for one in wanted for path in [one, *sorted(one.rglob("test_*.py"))]]
    todo = [str(path.relative_to(root)) for path in found if path.is_file()]

    def work(tree: Tree, waiting: SimpleQueue[str]) -> None:
        with Covering(tree) as covering, Warm(tree) as warm:
            while test := taken(waiting):
                line = covering.cover(warm, test)
                append(given.cover, line)
                print(f"{line['seconds']:7.1f} s {line['outcome']:8} {test}", flush=True)

    in_trees(given, [test for test in todo if test not in done], work)


@dataclass(frozen=True)
class Among:
    """A column's tests: files below `paths`, not below `without`; `options` are pytest's."""

    paths: tuple[str, ...] = ("tests",)
    without: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def have(self, file: str) -> bool:
        """Say whether a file of tests is one of them."""

        def below(folders: Sequence[str]) -> bool:
            return any(file == one or file.startswith(f"{one}/") for one in folders)

        return below(self.paths) and not below(self.without)

    @classmethod
    def named(cls, name: str, root: Path) -> Self:
        """Return those of a column: all (`full`), what `make test` runs (`quick`), or PATH,PATH."""
        if name == "full":
            return cls()
        if name != "quick":
            return cls(tuple(name.split(",")))
        made = subprocess.run(
            ["make", "-s", "quick-tests"], cwd=root, check=True, capture_output=True, text=True
        )
        parser = argparse.ArgumentParser()
        parser.add_argument("paths", nargs="+")
        parser.add_argument("--ignore", action="append", default=[])
        parser.add_argument("-m", dest="marks", default="")
        given = parser.parse_args(shlex.split(made.stdout))
        return cls(tuple(given.paths), tuple(given.ignore), ("-m", given.marks))


def covering_tests(ran: Mapping[str, Sequence[str]], function: str, among: Among) -> list[str]:
    """Return the quickest files of tests that run a function, of those that run each of its file.

    What stands in no function is for all of them: whatever runs one, and does not only load it.
    """
    tests = ran.get(function, [])
    if function == MODULE:
        run = {test for name, some in ran.items() if name != MODULE for test in some}
        tests = [test for test in tests if test in run] or tests
    return [test for test in tests if among.have(test)][:MOST_FILES]


def try_mutant(
    tree: Tree,
    warm: Warm,
    mutant: Mutant,
    ran: Mapping[str, Mapping[str, list[str]]],
    among: Among,
) -> dict[str, Any]:
    """Return what tests say of a mutant."""
    place = find(tree.root, mutant, lambda: written_files(tree.root))
    if place is None:
        return {"status": "gone"}
    file, edit = place
    tests = covering_tests(ran.get(file, {}), mutant.function, among)
    if not tests:
        return {"status": "uncovered"}
    with tree.changed(file, edit.apply((tree.root / file).read_bytes())):
        return judge(warm, tests, among.options)


def judge(warm: Warm, tests: Sequence[str], marks: Sequence[str]) -> dict[str, Any]:
    """Run tests on changed code until one fails that fails alone as well."""
    began = time.monotonic()
    by_chance: list[str] = []
    while True:
        left = LIMIT_S - (time.monotonic() - began)
        passed_over = [option for test in by_chance for option in ("--deselect", test)]
        answer = warm.run(tests, left, "-x", *marks, *passed_over)
        status = STATUSES[answer["outcome"]]
        if status in KILLED:
            by = answer["test"] or tests[0]
            alone = STATUSES[warm.run([by], LIMIT_S, "-x", *marks)["outcome"]]
            if alone == "survived" and status == "killed" and by not in by_chance:
                by_chance.append(by)
                continue
            status = alone
        result = {
            "status": status,
            "seconds": round(time.monotonic() - began, 1),
            "files": len(tests),
        }
        if status in KILLED:
            result["by"] = by
        if status == "error":
            result["said"] = answer["said"][-400:]
        return result | ({"by_chance": by_chance} if by_chance else {})


def run_column(given: argparse.Namespace) -> None:
    """Try each mutant that a column does not have yet."""
    chosen = mutants()
    done = {line["id"] for line in read(RESULTS) if line["column"] == given.column}
    known = {line["id"]: line for line in read(RESULTS) if line["column"] == given.beyond}
    ran = covered(read(given.cover))
    among = Among.named(given.tests, given.tree[0])

    def work(tree: Tree, waiting: SimpleQueue[str]) -> None:
        with Warm(tree) as warm:
            while name := taken(waiting):
                mutant = chosen[name]
                if name in known and known[name]["status"] in KILLED:
                    append(RESULTS, known[name] | {"column": given.column})
                    continue
                result = {"commit": tree.commit} | try_mutant(tree, warm, mutant, ran, among)
                append(RESULTS, {"column": given.column, "id": name} | result)
                print(name, mutant.file, mutant.function, mutant.kind, *result.values(), flush=True)

    in_trees(given, [name for name in given.only or chosen if name not in done], work)


def report(given: argparse.Namespace) -> None:
    """Write what the columns say."""
    REPORT.write_text(report_of(mutants(), read(RESULTS), tomllib.loads(EQUIVALENT.read_text())))


def report_of(
    chosen: Mapping[str, Mutant], results: Sequence[Mapping[str, Any]], same: Mapping[str, str]
) -> str:
    """Return the page of what the columns say; `same` says why mutants change nothing."""
    columns: dict[str, dict[str, str]] = {}
    for line in results:
        columns.setdefault(line["column"], {})[line["id"]] = line["status"]
    counted = {name: mutant for name, mutant in chosen.items() if name not in same}
    parts = [_HEAD.format(count=len(chosen), most=MOST_FILES, limit=LIMIT_S)]
    parts += ["", "| package | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    packages: dict[str, list[str]] = {}
    for name, mutant in counted.items():
        packages.setdefault(mutant.file.split("/")[2].removesuffix(".py"), []).append(name)
    for package, names in [*sorted(packages.items()), ("**all**", list(counted))]:
        cells = [
            _share([column[name] for name in names if name in column])
            for column in columns.values()
        ]
        parts.append(f"| {package} | " + " | ".join(cells) + " |")
    for column, statuses in columns.items():
        left = [name for name in counted if statuses.get(name) not in (None, *KILLED)]
        parts += ["", f"## {column}: {len(left)} that no test kills", ""]
        parts += [_entry(name, chosen[name], statuses[name]) for name in left]
    parts += ["", "## Changes that change nothing", ""]
    parts += [_entry(name, chosen[name], reason) for name, reason in same.items()]
    return "\n".join(parts).rstrip() + "\n"


def _share(statuses: Sequence[str]) -> str:
    tried = [status for status in statuses if status != "gone"]
    killed = sum(status in KILLED for status in tried)
    return f"{killed} of {len(tried)}, {killed / len(tried):.0%}" if tried else "–"


def _entry(name: str, mutant: Mutant, said: str) -> str:
    head = f"- `{name}` {mutant.file}:{mutant.line}, `{mutant.function}`, {mutant.kind}: {said}"
    return f"{head}\n\n{_quoted('-', mutant.before)}\n{_quoted('+', mutant.after)}\n"


def _quoted(sign: str, text: str) -> str:
    return "\n".join(f"      {sign} {line.strip()}" for line in text.splitlines())


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    choosing = commands.add_parser("choose", help="choose mutants of this checkout's server")
    choosing.add_argument("--seed", type=int, default=1)
    choosing.add_argument("--count", type=int, default=300)
    choosing.add_argument("--out", type=Path, default=MUTANTS)
    choosing.set_defaults(do=choose_mutants)
    covering = commands.add_parser("cover", help="note which tests run which functions")
    covering.add_argument("--tests", nargs="+", default=["tests"], metavar="PATH")
    covering.set_defaults(do=cover_tests)
    running = commands.add_parser("run", help="try the mutants that a column does not have")
    running.add_argument("--column", required=True, metavar="NAME")
    running.add_argument("--tests", default="full", metavar="full|quick|PATH,PATH")
    running.add_argument(
        "--beyond", metavar="NAME", help="a column whose tests are all among these: what it kills"
    )
    running.add_argument("--only", nargs="+", metavar="ID")
    running.set_defaults(do=run_column)
    for command in (covering, running):
        command.add_argument("--tree", type=Path, action="append", required=True)
        command.add_argument("--cover", type=Path, default=COVER)
        command.add_argument("--minutes", type=float, default=10_000, help="begin nothing later")
    commands.add_parser("report", help="write the page").set_defaults(do=report)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
