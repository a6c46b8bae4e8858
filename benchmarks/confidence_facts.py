"""How far confidence holds for facts: under the server's weights, and under weights that are fitted
to the other users.

    python -m benchmarks.confidence_facts --locomo FILE --beam FILE --qmsum FILE --facts FOLDER

What is said to be true of a question is that its first answer is right: with facts both that
something here is about it and that it comes first. Questions on the same user that no fact answers
(near) are in the table, but in no fit: their cosines are those of questions that are answered.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mneme_server.features.recall.confidence import FACTS, Fit
from mneme_server.features.recall.ranking import RankingWeights

from benchmarks.confidence import auroc
from benchmarks.confidence_fit import logistic
from benchmarks.ranking.cases import FOREIGN, NEAR, OTHER, OWN, Case, cases_of
from benchmarks.ranking.files import add_options, files_of
from benchmarks.ranking.fit import answered
from benchmarks.ranking.sets import READERS

_BINS = 5
_SURE = 0.8


@dataclass(frozen=True)
class Judged:
    """A question of a user's, the best cosine that it has with a fact, and whether its first answer
    is right."""

    case: Case
    cosine: float
    right: bool

    def sure(self, fit: Fit) -> float:
        """Return the confidence under a fit."""
        words = self.case.words
        return fit.confidence(self.cosine, 0.0, words) if words.telling else 0.0


def fitted(judged: Sequence[Judged]) -> Fit:
    """Return the weights under which it is told best whether the first answer is right."""
    features = np.array([[one.cosine, 1.0] for one in judged])
    right = np.array([one.right for one in judged], float)
    given = FACTS.identified * np.array(
        [one.case.words.identified - 2.0 * one.case.words.missing for one in judged]
    )
    counts = np.full(len(judged), 1.0 / len(judged))
    cosine, bias = logistic(features, right, counts, given, least=(0.5,))
    return replace(FACTS, cosine=cosine, bias=bias)


def figures(judged: Sequence[Judged], sure: Callable[[Judged], float]) -> str:
    """Return a table of what is said of questions, and of how often it is true."""
    by = {where: [one for one in judged if one.case.where == where and one.case.of == "facts"]
          for where in (OWN, NEAR, FOREIGN)}  # fmt: skip
    by[OTHER] = [one for one in judged if one.case.of != "facts"]
    own = by[OWN]
    wrong = [one for one in own if not one.right]
    lines = [
        "| | median | 90 % | ≥ 0.5 |",
        "|---|---|---|---|",
        _row("answered, first right", [sure(one) for one in own if one.right]),
        _row("answered, first wrong", [sure(one) for one in wrong]),
        _row("on the same user, no answer", list(map(sure, by[NEAR]))),
        _row("on other subjects", list(map(sure, by[FOREIGN]))),
        _row("of the other sets", list(map(sure, by[OTHER]))),
        "",
        f"AUROC against other subjects {auroc([*map(sure, own)], [*map(sure, by[FOREIGN])]):.3f};"
        f" {_SURE} or more with a wrong first:"
        f" {sum(sure(one) >= _SURE for one in wrong) / len(own):.3f} of the questions",
        "",
        "said / true: " + ", ".join(_bins([*own, *by[FOREIGN]], sure)),
    ]
    return "\n".join(lines)


def _bins(judged: Sequence[Judged], sure: Callable[[Judged], float]) -> list[str]:
    found = []
    for number in range(_BINS):
        some = [one for one in judged if min(int(sure(one) * _BINS), _BINS - 1) == number]
        if some:
            said = statistics.fmean(map(sure, some))
            true = statistics.fmean(one.right for one in some)
            found.append(f"{said:.2f} / {true:.2f} ({len(some)})")
    return found


def _row(name: str, values: Sequence[float]) -> str:
    if not values:
        return f"| {name} | – | – | – |"
    most = sorted(values)[round(0.9 * (len(values) - 1))]
    half = statistics.fmean(value >= 0.5 for value in values)
    return f"| {name} ({len(values)}) | {statistics.median(values):.2f} | {most:.2f} | {half:.3f} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.confidence_facts", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    given = parser.parse_args(argv)
    files = {of: file for of, file in files_of(given).items() if of in READERS}
    if "facts" not in files:
        parser.error("name the folder of facts")
    cases = cases_of(files, "local", lambda text: print(text, file=sys.stderr))
    judged = []
    for case in cases.cases:
        if case.place[0] == "facts" and case.where in (OWN, NEAR, FOREIGN, OTHER):
            first = answered(cases, case, RankingWeights()).ids[:1]
            right = not case.asked.evidence.isdisjoint(first) and case.where == OWN
            judged.append(Judged(case, float(np.nanmax(case.found.cosine)), right))
    print(f"{FACTS}\n\n{figures(judged, lambda one: one.sure(FACTS))}\n")
    some = [one for one in judged if one.case.of == "facts" and one.case.where in (OWN, FOREIGN)]
    users = sorted({one.case.talk for one in some})
    others = {user: fitted([one for one in some if one.case.talk != user]) for user in users}
    every = fitted(some)
    print(f"Fitted to the other users (to all: {every.cosine:.1f}, {every.bias:.1f}):\n")
    print(figures(judged, lambda one: one.sure(others.get(one.case.talk, every))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
