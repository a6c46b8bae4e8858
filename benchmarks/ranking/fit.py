"""The ranking tried on all sets at once, offline: its figures, what each term earns, and weights
that are fitted.

    python -m benchmarks.ranking.fit --locomo FILE --beam FILE --qmsum FILE --facts FOLDER
        [--check] [--without] [--fit]

The first run records and embeds the sets, which takes minutes, and keeps what is found for each
question; later ones take seconds. `--check` compares the answers with the server's own, `--without`
takes each term away in turn, `--fit` fits the weights to all sets, and to all but each one.

A set's figure is the share of the evidence among the first ten; of facts the share of questions
whose first answer is right, and beside it among the first three.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from mneme_server.engine.corpus.document import Document
from mneme_server.features.recall.copies import CopyKeys, keys_of
from mneme_server.features.recall.hybrid import fuse
from mneme_server.features.recall.ranking import TERMS, Ints, RankingWeights
from mneme_server.features.recall.succession import newest_first, picked_by, versions

from benchmarks.ranking.cases import OWN, Case, Cases, cases_of
from benchmarks.ranking.files import add_options, files_of
from benchmarks.ranking.judging import CUT, ablations
from benchmarks.ranking.sets import READERS
from benchmarks.retrieval import fraction_found

_LOOKED_BEHIND = 5
FACTS, NO_ROLES = "facts", "beam, no roles"
_STEPS = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)
_WORTH = 0.0005
"""What a step must gain, on average over the sets: less is chance."""

Figures: TypeAlias = Mapping[str, float]
"""By set, 0 to 1; of facts, also those `among three` and of `keywords`."""


@dataclass(frozen=True)
class Found:
    """The first answers to a question, best first, and the question."""

    case: Case
    ids: Sequence[str]

    @property
    def share(self) -> float:
        """The share of the evidence among the first ten."""
        return fraction_found(self.case.asked.evidence, self.ids, CUT)

    def right(self, among: int) -> bool:
        """Whether a right one is among the first so many."""
        return not self.case.asked.evidence.isdisjoint(self.ids[:among])


def answered(cases: Cases, case: Case, weights: RankingWeights) -> Found:
    """Rank what was found for a question as the server does."""
    held = cases.held[case.place]
    index: Any = SimpleNamespace(columns=held.columns)
    ranked = fuse(index, case.found, weights)
    keys = keys_of(held.columns, ranked.rows)
    doc_ids = held.columns.doc_id[ranked.rows]
    return Found(case, _shown(doc_ids, keys, held.documents, case.asked.text))


def _shown(
    doc_ids: Ints, keys: Ints, documents: Mapping[int, Document], query: str
) -> Sequence[str]:
    """Return the ids of what is shown of ranked documents: copies once, and the newest first of
    those that say almost the same."""
    best = CopyKeys.of(keys).best[: CUT + _LOOKED_BEHIND]
    found = [documents[key] for key in doc_ids[best].tolist()]
    shown = [one.source_id for one in found]
    for group in versions(found):
        for place, taken in zip(group, newest_first(group, found, picked_by(query)), strict=True):
            shown[place] = found[taken].source_id
    return shown[:CUT]


def figures_of(cases: Cases, weights: RankingWeights | None = None) -> dict[str, float]:
    """Return the figures of all sets under these weights."""
    weights = weights or RankingWeights()
    by_set: dict[str, list[Found]] = {}
    for case in cases.cases:
        if case.where == OWN:
            by_set.setdefault(case.of, []).append(answered(cases, case, weights))
            if case.of == "beam":
                by_set.setdefault(NO_ROLES, []).append(
                    answered(cases, _without_roles(case), weights)
                )
    figures = {
        of: statistics.fmean(one.right(1) if of == FACTS else one.share for one in found)
        for of, found in by_set.items()
    }
    if FACTS in by_set:
        found = by_set[FACTS]
        figures["among three"] = statistics.fmean(one.right(3) for one in found)
        keywords = [one for one in found if one.case.asked.kind == "keyword"]
        figures["keywords"] = statistics.fmean(one.right(1) for one in keywords)
    return figures


def _without_roles(case: Case) -> Case:
    known = case.found.candidates
    nobody = replace(known, author_named=np.zeros_like(known.author_named))
    return replace(case, found=replace(case.found, candidates=nobody))


def worth(figures: Figures, sets: Sequence[str]) -> float:
    """Return what weights are fitted for: the mean over the sets, of which meetings, where the
    best is far below 1, count four times their figure."""
    return statistics.fmean(figures[of] * (4.0 if of == "qmsum" else 1.0) for of in sets)


def fitted(
    cases: Cases, sets: Sequence[str], say: Callable[[str], None]
) -> tuple[RankingWeights, Figures]:
    """Return weights that are the best for these sets, changed one at a time from the defaults."""
    some = replace(cases, cases=[case for case in cases.cases if case.of in sets])
    judged = [*sets, *([NO_ROLES] if "beam" in sets else []), *([] if FACTS not in sets else
              ["among three", "keywords"])]  # fmt: skip
    best = RankingWeights()
    figures: Figures = figures_of(some, best)
    gained = True
    while gained:
        gained = False
        for name in TERMS:
            for step in _STEPS:
                tried = replace(best, **{name: getattr(best, name) * step})
                if tried == best:
                    continue
                there = figures_of(some, tried)
                if worth(there, judged) > worth(figures, judged) + _WORTH:
                    best, figures, gained = tried, there, True
                    say(f"{name} {getattr(best, name):.3f}: {worth(there, judged):.4f}")
    return best, figures


def differing(cases: Cases) -> int:
    """Return how many questions the server itself answers otherwise."""
    asked = [case for case in cases.cases if case.where == OWN]
    return sum(
        list(answered(cases, case, RankingWeights()).ids)
        != list(cases.answers[case.of, case.talk, case.asked.text])
        for case in asked
    )


def _row(name: str, figures: Figures) -> str:
    return f"| {name} | {' | '.join(f'{value:.3f}' for value in figures.values())} |"


def _table(rows: Mapping[str, Figures]) -> str:
    names = list(next(iter(rows.values())))
    lines = [f"| | {' | '.join(names)} |", f"|{'---|' * (len(names) + 1)}"]
    return "\n".join([*lines, *(_row(name, figures) for name, figures in rows.items())])


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.ranking.fit", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    parser.add_argument("--embedder", default="local", help="as MNEME_EMBEDDER, e.g. e5")
    parser.add_argument("--check", action="store_true", help="compare with the server's answers")
    parser.add_argument("--without", action="store_true", help="take each term away in turn")
    parser.add_argument("--fit", action="store_true", help="fit the weights")
    given = parser.parse_args(argv)
    files = {of: file for of, file in files_of(given).items() if of in READERS}
    if not files:
        parser.error("name the file of at least one set")
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s {text}", file=sys.stderr)

    cases = cases_of(files, given.embedder, say)
    rows: dict[str, Figures] = {"**the defaults**": figures_of(cases)}
    if given.check:
        print(f"{differing(cases)} questions are answered otherwise by the server\n")
    if given.without:
        rows |= {f"`{name}`": figures_of(cases, weights) for name, weights in ablations()}
    print(_table(rows))
    if given.fit:
        weights, _ = fitted(cases, list(files), say)
        rows = {"fitted to all": figures_of(cases, weights)}
        for left_out in files if len(files) > 1 else ():
            others, _ = fitted(cases, [of for of in files if of != left_out], say)
            rows[f"fitted without {left_out}"] = figures_of(cases, others)
        print(f"\n{weights}\n\n{_table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
