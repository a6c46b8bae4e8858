"""Recall: search as asked, and show the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Protocol, TypeAlias

import numpy as np

from mneme_server.common import turns
from mneme_server.common.begun import Begun, repeatable
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.engine.corpus.ports import (
    CorpusIndex,
    CorpusSearch,
    Matrix,
    Question,
    Selection,
    WordEvidence,
)
from mneme_server.engine.corpus.tenant import TenantsAtOnce
from mneme_server.features.recall.answer import (
    Rerank,
    answer_of,
    rerank,
)
from mneme_server.features.recall.confidence import (
    FITTED,
    CosineScale,
    best_of,
    confidence_of,
    scale_of,
    words_of,
)
from mneme_server.features.recall.copies import Crowding
from mneme_server.features.recall.hybrid import (
    CANDIDATES_PER_SIDE,
    CandidateSet,
    OneSided,
    Ranked,
    fuse,
    search_hybrid,
)
from mneme_server.features.recall.long_texts import add_passages
from mneme_server.features.recall.model import (
    RecallAnswer,
    RecallMode,
    RecallOutcome,
    RecallQuery,
)
from mneme_server.features.recall.query import as_asked
from mneme_server.features.recall.ranking import NO_SESSION
from mneme_server.features.recall.reranker import DeferredReranker
from mneme_server.features.recall.sessions import search_sessions
from mneme_server.features.recall.spelling import spelled, suspects

_Embedding: TypeAlias = Callable[[], Matrix | None]
LEXICAL_HALF = 10.0
"""BM25 at which the score of a LEXICAL result is 0.5."""


def as_spelled(index: CorpusIndex, query: str, selection: Selection) -> str:
    """Return a query with its misspelt words as they are meant; what some text has is none."""
    return spelled(query, lambda word: index.word_evidence(word, selection, ()).occurring > 0.0)


class DeferrableEmbedder(Protocol):
    """Embeds queries while a caller waits, if that can be done soon."""

    def begin(self, texts: Sequence[str]) -> Begun[Matrix | None]:
        """Start embedding, for unit vectors (n, d), or None when they are not to be had soon."""
        ...


class QueryEmbedder(Protocol):
    """Embeds queries while a caller waits."""

    def begin(self, texts: Sequence[str]) -> Begun[Matrix]:
        """Start embedding, for unit vectors (n, d)."""
        ...


@dataclass(frozen=True, slots=True)
class Recall:
    """Recalls memories.

    With `soon`, a HYBRID query that cannot be embedded soon is answered by its words alone. With
    `reranker`, the first results of a HYBRID query are put in its order.
    `model_id` is the embedder's: by it confidence is known.
    """

    tenants: TenantsAtOnce
    embedder: QueryEmbedder
    soon: DeferrableEmbedder | None = None
    reranker: DeferredReranker | None = None
    model_id: str = ""

    @property
    def scale(self) -> CosineScale:
        """What the model's cosines mean."""
        return scale_of(self.model_id)

    def search(self, tenant_id: str, query: RecallQuery) -> RecallAnswer:
        """Return what bears on the query, the best first; equal scores by time, then by id.

        Raises:
            EmbeddingError: the embedding backend failed, and the query needs its vector.
        """
        if _parts_of(query.filter.kinds):  # Two sessions that ended alike are two sessions.
            query = replace(query, every_copy=True)
        open_tenant = self.tenants.open_at_once if query.at_once else self.tenants.open
        with open_tenant(tenant_id) as tenant:
            begun = self._begun(query)
            order = self._reranker(query)
            question = Question(query.text, query.filter, begun)
            with tenant.searching(question) as corpus, turns.computing():
                return self._answer(corpus, query, begun, order)

    def _answer(
        self,
        corpus: CorpusSearch,
        query: RecallQuery,
        begun: Begun[Matrix | None],
        order: Rerank | None,
    ) -> RecallAnswer:
        """Select, search, fuse, rerank, answer."""
        waiting = corpus.pending  # Before the search: what comes meanwhile may be missed.
        index = corpus.index
        selection = index.select(query.filter)
        if not selection.count:
            return _nothing(corpus, query, selection, pending=waiting)
        if query.mode == RecallMode.HYBRID and corpus.whole:
            meant = as_spelled(index, query.text, selection)
            if meant != query.text:
                query = replace(query, text=meant)
                begun = repeatable(self._begin_embedding(query))
        embedding = partial(turns.outside, begun)
        words = cache(partial(words_of, index, query.text, selection))
        confidence = self._confidence(corpus, query, selection, words)
        crowding = Crowding(index, every_copy=query.every_copy)
        searched: Selection | None = selection
        while searched is not None:  # Again, where copies leave no room for the rest.
            found = _search(index, query, embedding, searched, words=words, scale=self.scale)
            candidates = fuse(index, found, query.weights)
            searched = crowding.rest_of(searched, candidates)
        sure = confidence(candidates)
        if sure is not None and sure < query.min_confidence:
            why = RecallOutcome.NOTHING_CONFIDENT
            return RecallAnswer((), why, selection.count, pending_count=waiting, confidence=sure)
        results = rerank(corpus, query, candidates, crowding.keys, order)
        answer = answer_of(
            corpus, query, selection, candidates, results, pending=waiting, confidence=sure
        )
        if not query.bare:  # Else nobody shows what was found.
            rows = [results.rows[result.document.doc_id] for result in answer.results]
            add_passages(index, query.text, embedding(), answer.results, rows)
        return answer

    def _begun(self, query: RecallQuery) -> Begun[Matrix | None]:
        """Return the query's vector, which is begun before the call stands in line, unless the
        query may have to be spelled otherwise."""
        if query.mode == RecallMode.HYBRID and suspects(query.text):
            return repeatable(Begun(partial(self._embedded, query)))
        return repeatable(self._begin_embedding(query))

    def _embedded(self, query: RecallQuery) -> Matrix | None:
        return self._begin_embedding(query)()

    def _begin_embedding(self, query: RecallQuery) -> Begun[Matrix | None]:
        if query.mode == RecallMode.LEXICAL:
            return Begun(lambda: None)
        can_do_without = query.mode == RecallMode.HYBRID and self.soon is not None
        embedder = self.soon if self.soon is not None and can_do_without else self.embedder
        text = as_asked(query.text) if query.mode == RecallMode.HYBRID else query.text
        return embedder.begin([text])

    def _reranker(self, query: RecallQuery) -> Rerank | None:
        if self.reranker is None or not query.rerank or query.mode != RecallMode.HYBRID:
            return None
        order = partial(self.reranker.order, query.text)
        return lambda texts: turns.outside(partial(order, texts))

    def _confidence(
        self,
        corpus: CorpusSearch,
        query: RecallQuery,
        selection: Selection,
        words: Callable[[], WordEvidence],
    ) -> Callable[[Ranked], float | None]:
        """Return what tells how sure the candidates are; None where that is not known, or was not
        asked for. Its words are looked up at once, while the query is being embedded."""
        if not query.wants_confidence or not corpus.whole:
            return lambda _: None
        if self.model_id in FITTED:
            words()

        def sure(candidates: Ranked) -> float | None:
            if candidates.of_named_day:
                return 1.0
            return confidence_of(
                words,
                partial(best_of, corpus.index, query.text, selection),
                self.model_id,
                rows=candidates.rows,
                similarity=candidates.similarity,
                facts=corpus.index.columns.session[candidates.rows] == NO_SESSION,
                by_words=query.mode == RecallMode.LEXICAL or candidates.words_only,
            )

        return sure


def _parts_of(kinds: frozenset[MemoryKind]) -> frozenset[MemoryKind]:
    """Return the kinds that these sum up; none when one of them sums up nothing."""
    if not all(kind.parts for kind in kinds):
        return frozenset()
    return frozenset(part for kind in kinds for part in kind.parts)


def _search(
    index: CorpusIndex,
    query: RecallQuery,
    embedding: _Embedding,
    selection: Selection,
    *,
    words: Callable[[], WordEvidence],
    scale: CosineScale,
) -> CandidateSet | OneSided:
    if query.mode == RecallMode.LEXICAL:
        hits = index.search_lexical(query.text, CANDIDATES_PER_SIDE, selection)
        bm25 = hits.scores.astype(np.float64)
        return OneSided(hits, bm25, bm25 / (bm25 + LEXICAL_HALF), np.full_like(bm25, np.nan))
    if query.mode == RecallMode.DENSE:
        vectors = embedding()
        assert vectors is not None
        hits = index.search_dense(vectors[0], CANDIDATES_PER_SIDE, selection)
        cosine = hits.scores.astype(np.float64)
        return OneSided(hits, cosine, np.clip(cosine, 0.0, 1.0), cosine)
    if parts := _parts_of(query.filter.kinds):
        return search_sessions(
            index, query.text, embedding, selection,
            parts=parts, weights=query.weights, words=words, scale=scale,
            as_of=query.as_of,
        )  # fmt: skip
    return search_hybrid(
        index, query.text, embedding, selection, words=words, scale=scale, as_of=query.as_of
    )


def _nothing(
    corpus: CorpusSearch, query: RecallQuery, selection: Selection, *, pending: int
) -> RecallAnswer:
    """Return the answer where nothing is selected; `pending` documents wait for embedding."""
    count = corpus.count_of(selection)
    if count:  # Of candidates alone: none of these is one.
        why = RecallOutcome.NOTHING_ABOVE_MIN_SCORE
    elif corpus.has(query.filter.kinds):
        why = RecallOutcome.NOTHING_MATCHES_FILTERS
    else:
        why = RecallOutcome.NOTHING_STORED
    if corpus.whole:
        return RecallAnswer((), why, 0, confidence=0.0)
    return RecallAnswer((), why, count, pending_count=pending, partial=True)
