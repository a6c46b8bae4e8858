"""How the weights of confidence are fitted for an embedder: a logistic regression over sets.

Every question is asked of its own conversation (answered), and of one of each other set (not). The
stores are those of `benchmarks.ranking`, recorded and embedded once. The weight of identifiers is
not fitted, since no set has enough of them: it is a choice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import WordEvidence
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.recall.confidence import AGAINST, Fit, attained, best_of, words_of
from numpy.typing import NDArray

from benchmarks.ranking.sets import READERS, Talk
from benchmarks.ranking.store import Store, record, stored, tenant_of

IDENTIFIED = 7.5
"""The weight of identifiers, which is not fitted."""
_LEAST = 0.5, 0.0, 0.5
"""Of the other weights, in their order: more of a sign never makes less sure, whatever a few sets
say. BM25 may tell nothing beside the cosine and the words that occur."""
_RIDGE = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What is known of one question where it was asked; its vector has the best cosine."""

    of: str
    where: str
    cosine: float
    best: float
    words: WordEvidence

    def sure(self, fit: Fit) -> float:
        """Return the confidence under a fit."""
        return fit.confidence(self.cosine, self.best, self.words) if self.words.telling else 0.0


def look(
    cache: Path,
    files: Mapping[str, Path],
    embedder: str,
    nonsense: Sequence[str],
    say: Callable[[str], None],
    *,
    seed: int,
    own: str,
    other: str,
    same: str,
) -> list[Seen]:
    """Ask every question of the sets in its own store, another of its set, and each other set."""
    chance = random.Random(seed)
    sets = {of: READERS[of](file) for of, file in files.items()}
    with ExitStack() as opened:
        stores = {
            of: opened.enter_context(stored(
                cache, of, file, embedder,
                lambda store, talks=sets[of]: record(store, talks), say,  # type: ignore[misc]
            ))
            for of, file in files.items()
        }  # fmt: skip

        def places(of: str, talk: Talk) -> Iterator[tuple[str, str, Talk]]:
            yield own, of, talk
            for others in sorted(sets.keys() - {of}):
                yield other, others, chance.choice(sets[others])
            alike = [one for one in sets[of] if one is not talk]
            if alike:
                yield same, of, chance.choice(alike)

        seen = []
        for of, talks in sets.items():
            say(f"{of}: asking")
            for talk in talks:
                for asked in talk.questions:
                    for where, whose, place in places(of, talk):
                        seen.append(_seen(stores[whose], place, of, where, asked.text))
            seen += [_seen(stores[of], talks[0], of, "nonsense", text) for text in nonsense]
    return seen


def _seen(store: Store, talk: Talk, of: str, where: str, text: str) -> Seen:
    recall = store.recall
    vector = recall.embedder.begin([text])()[0]
    with recall.tenants.open(tenant_of(talk)) as memory:
        index = memory.index
        selection = index.select(DocumentFilter(kinds=frozenset({EVENT})))
        cosines = index.search_dense(vector, 1, selection).scores
        words = words_of(index, text, selection)
        best = attained(best_of(index, text, selection), words)
    return Seen(of, where, float(cosines[0]), best, words)


def fitted(seen: Sequence[Seen], own: str, other: str) -> Fit:
    """Return the weights under which the questions are told apart best.

    Each set counts alike, and in each its own questions as much as those asked elsewhere.
    """
    judged = [one for one in seen if one.where in (own, other) and one.words.telling]
    features = np.array([[s.cosine, s.best, s.words.occurring, 1.0] for s in judged])
    answered = np.array([s.where == own for s in judged], float)
    sizes: dict[tuple[str, str], int] = {}
    for one in judged:
        sizes[one.of, one.where] = sizes.get((one.of, one.where), 0) + 1
    counts = np.array([1.0 / sizes[s.of, s.where] for s in judged])
    # What is identified is there already: its choice counts while the others are fitted.
    given = IDENTIFIED * np.array([s.words.identified - AGAINST * s.words.missing for s in judged])
    cosine, best, occurring, bias = logistic(
        features, answered, counts / counts.sum(), given, _LEAST
    )
    return Fit(cosine, best, occurring, IDENTIFIED, bias)


def logistic(
    features: Floats, answered: Floats, counts: Floats, given: Floats, least: Sequence[float]
) -> list[float]:
    """Return a logistic regression's weights, the bias last; `given` is added to each sum.

    Args:
        features: of n questions, the last of them 1, (n, k).
        answered: 1 or 0, (n,).
        counts: how much each counts, (n,).
        given: what is added to each sum, (n,).
        least: of each weight but the bias.
    """

    def loss(weights: Floats) -> float:
        total = features @ weights + given
        wrong = np.logaddexp(0.0, np.where(answered > 0, -total, total))
        return float(counts @ wrong + _RIDGE * weights @ weights)

    bounds = [*((lower, None) for lower in least), (None, None)]
    found = scipy.optimize.minimize(
        loss, np.ones(features.shape[1]), method="L-BFGS-B", bounds=bounds
    )
    return [round(float(weight), 2) for weight in found.x]
