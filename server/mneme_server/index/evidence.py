"""What the words of a query could attain, and which of them occur among the selected documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tantivy import Query

from mneme_server.corpus.ports import WordEvidence
from mneme_server.index.fields import Field
from mneme_server.index.lexical import LexicalIndex, Match, ParsedQuery

_MOST_OF_A_WORD = 2.2
"""BM25 over the idf of a word in a text that holds it again and again: k1 + 1."""
_LOOKED_AT = 64, 4_096
"""Documents with a word that are looked at for one that is selected. Of a word that so many have
without any of them being selected, one more is taken to be."""


def word_evidence(
    lexical: LexicalIndex,
    parsed: ParsedQuery | None,
    identifiers: Sequence[str],
    *,
    within: Query | None,
    everything: bool,
    selected: Callable[[Match], bool],
) -> WordEvidence:
    """Return what is known of a query's words.

    Args:
        lexical: the words of all documents.
        parsed: the query; None where it has no words that tell.
        identifiers: the names, paths and codes in it.
        within: what restricts a search to the selected documents, and some others.
        everything: whether all documents are selected.
        selected: whether some of those that match are selected.
    """

    if parsed is None:
        return WordEvidence(False, 0.0, 0.0, 0.0)
    view = parsed.view
    waiting = {
        doc_id: document.counts(Field.TEXT, view.statistics.words)
        for doc_id, document in view.waiting.items()
    }

    def occurs(terms: Sequence[str]) -> bool:
        if everything and len(terms) == 1 and view.searcher.doc_freq(Field.TEXT.value, terms[0]):
            return True
        held = [i for i, counts in waiting.items() if all(term in counts for term in terms)]
        if selected(Match(np.array(held, np.int64), np.zeros(len(held), np.float32), True)):
            return True
        for limit in _LOOKED_AT:
            match = lexical.with_all(parsed, terms, limit, within)
            if selected(match):
                return True
            if match.exhausted:
                return False
        return True

    counted = list(waiting.values())
    weights = {term: view.statistics.idf(Field.TEXT, term, counted) for term in parsed.terms}
    total = sum(weights.values())
    here = sum(weight for term, weight in weights.items() if occurs([term]))
    names = [terms for terms in map(lexical.words_of, identifiers) if terms]
    return WordEvidence(
        telling=True,
        attainable=_MOST_OF_A_WORD * total,
        occurring=here / total if total else 0.0,
        identified=sum(map(occurs, names)) / len(names) if names else 0.0,
    )


def telling(lexical: LexicalIndex, query: str) -> ParsedQuery | None:
    """Return the query with the words that tell what it is about; None when it has none."""
    parsed = lexical.parse(query, {Field.TEXT: 1.0})
    return parsed if parsed is not None and lexical.tells(query) else None
