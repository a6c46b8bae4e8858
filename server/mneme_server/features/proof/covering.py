"""Which results cover a query: the words that each holds, and the smallest set that holds all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from mneme_server.common.texts import composed

if TYPE_CHECKING:
    from mneme_server.engine.index.words.analysis import Words

_WORD = re.compile(r"\w+")
_EXACT_RESULTS = 16
"""Up to so many results the smallest set is found by looking at all sets; beyond, greedily."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How results cover a query.

    `words` are those of the query that each result holds. `minimal` are the places of the smallest
    set of results that holds every word that any of them holds; of several such sets, that of the
    best results. `completeness` is the share of the query's words that they hold.
    """

    words: Sequence[Sequence[str]]
    minimal: Sequence[int]
    completeness: float

    @property
    def redundancy(self) -> float:
        """The share of results that the smallest set does without."""
        return 1 - len(self.minimal) / len(self.words) if self.words else 0.0

    def necessity(self, place: int) -> float:
        """Return the share of the words held that this result alone holds."""
        held = set[str]().union(*self.words)
        others = set[str]().union(*(w for at, w in enumerate(self.words) if at != place))
        return len(held - others) / len(held) if held else 0.0


class Covering:
    """Finds how results cover a query. Words are compared by their stems, without stop words."""

    @cached_property
    def _words(self) -> Words:
        """Made for the first certificate: it brings tantivy and the stemmers of all languages."""
        from mneme_server.engine.index.words.analysis import Words

        return Words(names=False)

    def __call__(self, query: str, texts: Sequence[str]) -> Coverage:
        """Return how these texts, the best first, cover the query."""
        asked = self._asked(query)
        held = [[asked[stem] for stem in asked if stem in found] for found in map(self._of, texts)]
        completeness = len(set().union(*held)) / len(asked) if asked else 0.0
        return Coverage(held, _smallest(held), completeness)

    def _asked(self, query: str) -> dict[str, str]:
        """Return the words of a query by their stems."""
        written: dict[str, str] = {}
        for word in _WORD.findall(composed(query).lower()):
            for stem in self._of(word):
                written.setdefault(stem, word)
        return {stem: written.get(stem, stem) for stem in self._words.told(query)}

    def _of(self, text: str) -> set[str]:
        return set(self._words.english.analyze(self._words.spaced(text)))


def _smallest(held: Sequence[Collection[str]]) -> Sequence[int]:
    """Return the places of the fewest that hold all that any holds; the best of those that hold
    nothing, if all do."""
    if not held:
        return []
    wanted = set[str]().union(*held)
    if not wanted:
        return [0]
    useful = _without_copies(held)
    if len(useful) <= _EXACT_RESULTS:
        for size in range(1, len(useful) + 1):
            for places in combinations(useful, size):
                if wanted.issubset(_union(held, places)):
                    return places
    return _greedy(held, wanted)


def _without_copies(held: Sequence[Collection[str]]) -> list[int]:
    """Return the places of those that hold a word, and of several that hold the same the best."""
    first = dict[frozenset[str], int]()
    for place, words in enumerate(held):
        if words:
            first.setdefault(frozenset(words), place)
    return sorted(first.values())


def _greedy(held: Sequence[Collection[str]], wanted: set[str]) -> Sequence[int]:
    left, chosen = set(wanted), list[int]()
    while left:
        gains = [len(left.intersection(words)) for words in held]
        best = gains.index(max(gains))
        chosen.append(best)
        left.difference_update(held[best])
    return sorted(chosen)


def _union(held: Sequence[Collection[str]], places: Iterable[int]) -> set[str]:
    return set[str]().union(*(held[place] for place in places))
