"""How well recall ranks: each set beside its two sides alone, and without each term.

    python -m benchmarks.ranking --locomo FILE --beam FILE --qmsum FILE --tau-bench FILE

Prints Markdown, as docs/recall.md has it. What is not given, here or by a variable, is left out.
Recorded sets are kept in .cache/bench, so that only the first run takes minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from mneme_server.features.recall.model import RecallMode

from benchmarks.locomo_file import FormatError
from benchmarks.ranking import judging
from benchmarks.ranking.files import OPTIONS, add_options, files_of
from benchmarks.ranking.run import SetResult, measure_sessions, measure_set
from benchmarks.server import ROOT, ServerFailed
from benchmarks.session_questions import session_questions

_SPOKEN = [name for name in OPTIONS if name != "tau-bench"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.ranking", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    parser.add_argument("--no-ablations", action="store_true", help="only the modes")
    parser.add_argument("--embedder", default="local", help="as MNEME_EMBEDDER, e.g. e5")
    given = parser.parse_args(argv)
    files = files_of(given)
    if not files:
        parser.error("name the file of at least one set")
    for missing in sorted(OPTIONS.keys() - files.keys()):
        print(f"{missing}: left out, no file given", file=sys.stderr)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s {text}", file=sys.stderr)

    cache = ROOT / ".cache" / "bench"
    try:
        results = {
            name: measure_set(
                cache, name, files[name], given.embedder, say, ablate=not given.no_ablations
            )
            for name in _SPOKEN
            if name in files
        }
        sessions = None
        if "tau-bench" in files:
            sessions = measure_sessions(cache, files["tau-bench"], given.embedder, say)
    except (FormatError, ServerFailed) as error:
        print(f"benchmarks.ranking: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(_tables(results, sessions)))
    return 0


def _tables(
    results: Mapping[str, SetResult], sessions: Mapping[str, judging.Sessions] | None
) -> Iterable[str]:
    if results:
        yield _modes(results)
        yield from (_groups(name, result) for name, result in results.items() if result.groups)
        if any(result.ablated for result in results.values()):
            yield _ablated(results)
    if sessions:
        yield _table(
            ["sessions by", "attempts among the first four", "first right, of 20"],
            [
                [name, f"{found.attempts:.3f}", str(sum(found.first))]
                for name, found in sessions.items()
            ],
        )
        yield _table(
            ["question", "first result"],
            [
                [question.text, "right" if right else "wrong"]
                for question, right in zip(
                    session_questions(), sessions["Recall"].first, strict=True
                )
            ],
        )


def _modes(results: Mapping[str, SetResult]) -> str:
    rows = [
        [name, f"{result.questions}", *(f"{result.modes[mode].mean:.3f}" for mode in judging.MODES)]
        for name, result in results.items()
    ]
    return _table(["set", "questions", *judging.MODES], rows)


def _groups(name: str, result: SetResult) -> str:
    rows = [
        [group, *(f"{result.modes[mode].by_group()[group]:.3f}" for mode in judging.MODES)]
        for group in result.groups
    ]
    return _table([name, *judging.MODES], rows)


def _ablated(results: Mapping[str, SetResult]) -> str:
    terms = next(iter(results.values())).ablated
    first = ["**the defaults**", *(f"{r.modes['hybrid'].mean:.3f}" for r in results.values())]
    rows = [
        [f"`{term}`", *(f"{r.ablated[term].mean:.3f}" for r in results.values())] for term in terms
    ]
    return _table(["without", *results], [first, *rows])


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


assert set(judging.MODES.values()) == set(RecallMode)

if __name__ == "__main__":
    sys.exit(main())
