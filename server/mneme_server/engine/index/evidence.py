"""What the words of a query could attain, and which of them occur among the selected documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tantivy import Query

from mneme_server.engine.corpus.ports import Scores, WordEvidence
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.bm25 import K1
from mneme_server.engine.index.words.lexical import LexicalIndex, ParsedQuery, WordMatch

_MOST_OF_A_WORD = K1 + 1
"""BM25 over the idf of a word in a text that holds it again and again."""
_LOOKED_AT = 64, 4_096
"""Documents with a word that are looked at for one that is selected. Of a word that so many have
without any of them being selected, one more is taken to be."""
_MOST_NAMES = 64
"""Of more identifiers these, the first, are looked for, each by a search: a log holds hundreds."""
_FEWEST_DIGITS = 3
"""Of a number that names one thing. What has fewer often counts: "20 ideas"."""
_AT_ONCE = 20
"""Words that one search looks for: the sum of their powers of two is exact as a float."""


def word_evidence(
    lexical: LexicalIndex,
    parsed: ParsedQuery,
    identifiers: Sequence[str],
    *,
    within: Query | None,
    everything: bool,
    selected: Callable[[WordMatch], Scores],
) -> WordEvidence:
    """Return what is known of a query's words.

    Args:
        lexical: the words of all documents.
        parsed: the query.
        identifiers: the names, paths and codes in it.
        within: what restricts a search to the selected documents, and some others.
        everything: whether all documents are selected.
        selected: returns the scores of those that match and are selected.
    """
    view = parsed.view
    waiting = {doc_id: document.counts(WordField.TEXT) for doc_id, document in view.waiting.items()}

    def wait(terms: Sequence[str]) -> bool:
        held = [i for i, counts in waiting.items() if all(term in counts for term in terms)]
        if not held:
            return False
        found = WordMatch(np.array(held, np.int64), np.ones(len(held), np.float32), exhausted=True)
        return selected(found).size > 0

    def together(terms: Sequence[str]) -> bool:
        if wait(terms):
            return True
        for limit in _LOOKED_AT:
            match = lexical.with_all(parsed, terms, limit, within)
            found = selected(match).size > 0
            if found or match.exhausted:
                return found
        return True

    counted = list(waiting.values())
    having = {term: view.searcher.doc_freq(WordField.TEXT.value, term) for term in parsed.terms}
    weights = {
        term: view.statistics.idf(WordField.TEXT, term, counted, count)
        for term, count in having.items()
    }
    total = sum(weights.values())
    held = {term for term, count in having.items() if count}
    if not everything:
        held = _selected_of(lexical, parsed, sorted(held), within, selected)
    held |= {term for term in having if term not in held and wait([term])}
    here = sum(weight for term, weight in weights.items() if term in held)
    words_of = map(lexical.words_of, identifiers[:_MOST_NAMES])
    names = [ways for ways in words_of if any(ways)]
    found = [any(map(together, ways)) for ways in names]
    lacking = (ways for ways, there in zip(names, found, strict=True) if not there)
    named = {word for ways in lacking for words in ways for word in words if _is_number(word)}
    missing = sum(weight for term, weight in weights.items() if term in named - held)
    return WordEvidence(
        telling=True,
        attainable=_MOST_OF_A_WORD * total,
        occurring=here / total if total else 0.0,
        identified=sum(found) / len(found) if found else 0.0,
        missing=missing / total if total else 0.0,
    )


def _is_number(word: str) -> bool:
    """Whether so many of a word are digits that it stands for one thing, as in F-2204."""
    return sum(map(str.isdigit, word)) >= _FEWEST_DIGITS


def _selected_of(
    lexical: LexicalIndex,
    parsed: ParsedQuery,
    terms: Sequence[str],
    within: Query | None,
    selected: Callable[[WordMatch], Scores],
) -> set[str]:
    """Return the terms that some selected, committed document holds.

    A document's score tells which of them it holds, each by a power of two; so a search finds many
    at once.
    """
    held: set[str] = set()
    left = list(terms)
    while left:
        some = left[:_AT_ONCE]
        found, exhausted = 0, False
        for limit in _LOOKED_AT:
            match = lexical.with_any(parsed, some, limit, within)
            exhausted = match.exhausted
            found = int(np.bitwise_or.reduce(selected(match).astype(np.int64), initial=0))
            if found or exhausted:
                break
        if not found and not exhausted:
            return held | set(left)
        new = {term for place, term in enumerate(some) if found >> place & 1}
        held |= new
        left = [term for term in left if term not in (some if exhausted else new)]
    return held


def telling(lexical: LexicalIndex, query: str) -> ParsedQuery | None:
    """Return the query with the words that tell what it is about; None when it has none."""
    parsed = lexical.parse(query, {WordField.TEXT: 1.0})
    return parsed if parsed is not None and lexical.tells(query) else None
