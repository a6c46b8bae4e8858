"""Searching words: a query's terms, and the documents that have them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from mneme_server.engine.index import layout as layouts
from mneme_server.engine.index.fields import Field
from mneme_server.engine.index.layout import ID
from mneme_server.engine.index.waiting import Statistics, WaitingDocument, score
from mneme_server.engine.index.words import Asked, Words

DocIds = NDArray[np.int64]

_LONGEST_QUERY = 100_000
_CONSIDERED_TERMS = 2_048
_NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


class Match(NamedTuple):
    """Documents that match, the best first: `doc_ids` (n,), BM25 `scores` (n,)."""

    doc_ids: DocIds
    scores: NDArray[np.float32]
    exhausted: bool
    """Whether there are no more than these."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """What a search sees: the committed documents, and those that wait for the next commit."""

    searcher: tantivy.Searcher
    statistics: Statistics
    committed_languages: frozenset[str]
    waiting: Mapping[int, WaitingDocument]

    def languages(self) -> frozenset[str]:
        """Return the languages besides English that some of them are in."""
        if not self.waiting:
            return self.committed_languages
        return self.committed_languages.union(
            document.language for document in self.waiting.values() if document.language
        )

    def has(self, word: str) -> bool:
        """Whether a text holds a word."""
        return self.searcher.doc_freq(Field.TEXT.value, word) > 0 or any(
            word in document.counts(Field.TEXT) for document in self.waiting.values()
        )


class ParsedQuery(NamedTuple):
    """A query's terms, and the documents they are searched in."""

    terms: list[str]
    weights: Mapping[Field, float]
    query: Query
    view: View


class WordSearch:
    """Searches views of one index. Thread-safe.

    Args:
        query_terms: of more terms than that the rarest are searched for.
    """

    def __init__(self, query_terms: int) -> None:
        self.words = Words()
        self.schema = layouts.schema()
        self._query_terms = query_terms
        # Weak, as a view keeps its files open.
        self._last: tuple[weakref.ref[View], str, list[str]] | None = None

    def parse(self, view: View, query: str, weights: Mapping[Field, float]) -> ParsedQuery | None:
        """Return `query` as a disjunction of its terms in the weighted fields; None without terms.

        The text is never read as query syntax.
        """
        weights = {field: weight for field, weight in weights.items() if weight}
        last = self._last  # A call searches for the same words more than once.
        if last is not None and last[0]() is view and last[1] == query:
            terms = last[2]
        else:
            terms = self.terms(view, query)
            self._last = weakref.ref(view), query, terms
        clauses = [
            (Occur.Should, layouts.term(self.schema, field, term, weight))
            for term in terms
            for field, weight in weights.items()
        ]
        if not clauses:
            return None
        return ParsedQuery(terms, weights, Query.boolean_query(clauses), view)

    def terms(self, view: View, query: str) -> list[str]:
        """Return the distinct terms that `query` is searched by, in order.

        Stop words are dropped, unless there is nothing else. Of a word that texts in several
        languages may have in other forms, those count that occur; where the query's language is
        sure, others only if its own does not. Of more than `query_terms` terms the rarest that
        occur at all are kept, of the first two thousand.
        """
        languages = view.languages()
        query = query[:_LONGEST_QUERY]
        terms = _forms(view, self.words.asked(query, languages)) if languages else (
            self.words.told(query)
        )  # fmt: skip
        terms = list(dict.fromkeys(terms))
        if len(terms) <= self._query_terms:
            return terms
        terms = terms[:_CONSIDERED_TERMS]
        frequencies = [view.searcher.doc_freq(Field.TEXT.value, term) for term in terms]
        rare = sorted((n, i) for i, n in enumerate(frequencies) if n)
        kept = sorted(i for _, i in rare[: self._query_terms])
        return [terms[i] for i in kept]

    def tells(self, view: View, query: str) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        return self.words.tells(query[:_LONGEST_QUERY], view.languages())

    def search_waiting(self, parsed: ParsedQuery) -> Match:
        """Return all matching documents that are not committed yet, in no order."""
        view = parsed.view
        if not view.waiting:
            return Match(*_NOTHING, exhausted=True)
        found = score(view.waiting.values(), parsed.terms, parsed.weights, view.statistics)
        return Match(*found, exhausted=True)

    def search(self, parsed: ParsedQuery, limit: int, within: Query | None = None) -> Match:
        """Return the best `limit` committed documents; those `within`, if given."""
        query = parsed.query
        if within is not None:
            query = Query.boolean_query(
                [(Occur.Must, Query.const_score_query(within, 0.0)), (Occur.Must, query)]
            )
        searcher = parsed.view.searcher
        hits = searcher.search(query, limit, count=False).hits
        exhausted = len(hits) < limit
        if not hits:
            return Match(*_NOTHING, exhausted)
        found, addresses = zip(*hits, strict=True)
        doc_ids, scores = ids_of(searcher, addresses), np.array(found, np.float32)
        if parsed.view.waiting:  # Of a replaced document only the waiting form counts.
            newest = ~np.isin(doc_ids, list(parsed.view.waiting))
            doc_ids, scores = doc_ids[newest], scores[newest]
        return Match(doc_ids, scores, exhausted)

    def with_all(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> Match:
        """Return up to `limit` committed documents whose text holds all the terms."""
        clauses = [(Occur.Must, layouts.term(self.schema, Field.TEXT, term, 1.0)) for term in terms]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)

    def with_any(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> Match:
        """Return up to `limit` committed documents whose text holds some of the terms.

        The score is the sum of 2 ** place over the terms that it holds.
        """
        queries = [layouts.term(self.schema, Field.TEXT, term, 1.0) for term in terms]
        clauses = [
            (Occur.Should, Query.const_score_query(query, 2.0**place))
            for place, query in enumerate(queries)
        ]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)


def ids_of(searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress]) -> DocIds:
    """Return the ids of the documents at these places."""
    return np.array(searcher.fast_field_values(ID, list(addresses)), np.int64)


def _forms(view: View, asked: Asked) -> list[str]:
    """Return the forms that a query's words are searched by."""
    words = list(dict.fromkeys(asked.words))[:_CONSIDERED_TERMS]
    return [form for forms in words for form in _occurring(view, forms, sure=asked.sure)]


def _occurring(view: View, forms: Sequence[str], *, sure: bool) -> Sequence[str]:
    """Return the forms of a word that are searched for: one at least."""
    if len(forms) == 1 or (sure and view.has(forms[0])):
        return forms[:1]
    return [form for form in forms if view.has(form)] or forms[:1]
