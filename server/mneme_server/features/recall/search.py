"""Recall: search as asked, and show the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Protocol, TypeAlias

import numpy as np

from mneme_server.common.begun import Begun
from mneme_server.engine.corpus.cold_search import ColdIndex, ColdQuestion
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Hits, Matrix, Selection, WordEvidence
from mneme_server.engine.corpus.tenant import OpenTenant, TenantsAtOnce
from mneme_server.engine.scheduling.foreground import Foreground, Size
from mneme_server.features.recall.answer import Rerank, answer_of
from mneme_server.features.recall.confidence import (
    FITTED,
    CosineScale,
    best_of,
    confidence_of,
    scale_of,
    words_of,
)
from mneme_server.features.recall.copies import CopyKeys, keys_of, uncrowded
from mneme_server.features.recall.hybrid import CANDIDATES_PER_SIDE, Ranked, full, search_hybrid
from mneme_server.features.recall.model import (
    RecallAnswer,
    RecallMode,
    RecallOutcome,
    RecallQuery,
)
from mneme_server.features.recall.ranking import Floats, Ints, ranked
from mneme_server.features.recall.reranker import DeferredReranker
from mneme_server.features.recall.sessions import parts_of, search_sessions

_Embedding: TypeAlias = Callable[[], Matrix | None]
LEXICAL_HALF = 10.0
"""BM25 at which the score of a LEXICAL result is 0.5."""
_TIMES_CROWDED = 3
"""How often copies are taken out to make room; each time costs a search."""
LONG_QUERY = 500
"""Characters of a query beyond which it counts as large: it has a hundred words and more to search
by, and takes the embedding model many times as long as a question does."""


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
    foreground: Foreground
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
        if parts_of(query.filter.kinds):  # Two sessions that ended alike are two sessions.
            query = replace(query, every_copy=True)
        size = Size.SMALL if len(query.text) <= LONG_QUERY else Size.LARGE
        open_tenant = self.tenants.open_at_once if query.at_once else self.tenants.open
        with open_tenant(tenant_id) as tenant:
            begun = self._begin_embedding(query)  # Before it stands in line.
            if query.at_once and tenant.cold_index is not None:
                begun = _once(begun)
                answer = self._search_cold(tenant, tenant.cold_index, query, begun, size)
                if answer is not None:
                    return answer
                tenant.wait_until_built()
            embedding = partial(self.foreground.wait_outside, begun, size)
            with self.foreground.computing(size):
                waiting = tenant.pending  # Before the search: what comes meanwhile may be missed.
                # The same throughout: another may take its place meanwhile, with other rows.
                index = tenant.index
                selection = index.select(query.filter)
                if not selection.count:
                    return RecallAnswer(
                        (), self._why_nothing(index, query.filter), 0, confidence=0.0
                    )
                words = cache(partial(words_of, index, query.text, selection))
                if query.wants_confidence and self.model_id in FITTED:
                    words()  # While the query is being embedded.
                found, copies = _ranked_apart(index, query, embedding, selection, self.scale)
                best = partial(best_of, index, query.text, selection)
                sure = self._confidence(query, words, best, found)
                if sure is not None and sure < query.min_confidence:
                    why = RecallOutcome.NOTHING_CONFIDENT
                    return RecallAnswer(
                        (), why, selection.count, pending_count=waiting, confidence=sure
                    )
                return answer_of(
                    tenant, index, query, selection, found, pending=waiting,
                    copies=copies, rerank=self._rerank(query, size), confidence=sure,
                )  # fmt: skip

    def _search_cold(
        self,
        tenant: OpenTenant,
        cold_index: ColdIndex,
        query: RecallQuery,
        embedding: _Embedding,
        size: Size,
    ) -> RecallAnswer | None:
        """Answer from the store, which has no index yet; None where it has one by now."""
        waiting = tenant.pending
        with ExitStack() as lent:
            # It mostly waits for the database, so it takes no turn.
            cold = lent.enter_context(
                cold_index.search_store(ColdQuestion(query.text, query.filter, embedding))
            )
            if cold is None:
                return None
            lent.enter_context(self.foreground.computing(size))
            selection = cold.index.select(query.filter)
            if not selection.count:
                why = RecallOutcome.NOTHING_STORED
                if cold.anything:
                    why = RecallOutcome.NOTHING_MATCHES_FILTERS
                if cold.count:
                    why = RecallOutcome.NOTHING_ABOVE_MIN_SCORE
                return RecallAnswer((), why, cold.count, pending_count=waiting, partial=True)
            found, copies = _ranked_apart(cold.index, query, embedding, selection, self.scale)
            return answer_of(
                tenant, cold.index, query, selection, found, pending=waiting,
                copies=copies, rerank=self._rerank(query, size), confidence=None, cold=cold,
            )  # fmt: skip

    def _begin_embedding(self, query: RecallQuery) -> _Embedding:
        if query.mode == RecallMode.LEXICAL:
            return lambda: None
        can_do_without = query.mode == RecallMode.HYBRID and self.soon is not None
        embedder = self.soon if self.soon is not None and can_do_without else self.embedder
        return embedder.begin([query.text])

    def _rerank(self, query: RecallQuery, size: Size) -> Rerank | None:
        if self.reranker is None or not query.rerank or query.mode != RecallMode.HYBRID:
            return None
        order = partial(self.reranker.order, query.text)
        return lambda texts: self.foreground.wait_outside(partial(order, texts), size)

    def _confidence(
        self,
        query: RecallQuery,
        words: Callable[[], WordEvidence],
        best: Callable[[], Hits],
        found: Ranked,
    ) -> float | None:
        if not query.wants_confidence:
            return None
        if found.of_named_day:
            return 1.0
        return confidence_of(
            words,
            best,
            self.model_id,
            rows=found.rows,
            similarity=found.similarity,
            by_words=query.mode == RecallMode.LEXICAL or found.words_only,
        )

    @staticmethod
    def _why_nothing(index: CorpusIndex, filter_: DocumentFilter) -> RecallOutcome:
        stored = index.select(DocumentFilter(kinds=filter_.kinds))
        return (
            RecallOutcome.NOTHING_MATCHES_FILTERS if stored.count else RecallOutcome.NOTHING_STORED
        )


def _ranked_apart(
    index: CorpusIndex,
    query: RecallQuery,
    embedding: _Embedding,
    selection: Selection,
    scale: CosineScale,
) -> tuple[Ranked, CopyKeys | None]:
    """Rank, and once more without the copies when they leave no room for the rest.

    Return the candidates and, unless every copy is wanted, their keys; repeated are those of what
    there are copies of among all that was found.
    """
    if query.every_copy:
        return _rank(index, query, embedding, selection, scale), None
    embedding = _once(embedding)
    repeated: list[Ints] = []
    for _ in range(_TIMES_CROWDED):
        found = _rank(index, query, embedding, selection, scale)
        keys = CopyKeys.of(keys_of(index.columns, found.rows))
        repeated.append(keys.repeated)
        rest = uncrowded(index, found.rows, keys, selection) if found.capped else None
        if rest is None:
            break
        selection = rest
    return found, replace(keys, repeated=np.concatenate(repeated))


def _once(embedding: _Embedding) -> _Embedding:
    """Return what waits for the vector the first time."""
    known: list[Matrix | None] = []

    def waited() -> Matrix | None:
        if not known:
            known.append(embedding())
        return known[0]

    return waited


def _rank(
    index: CorpusIndex,
    query: RecallQuery,
    embedding: _Embedding,
    selection: Selection,
    scale: CosineScale,
) -> Ranked:
    if query.mode == RecallMode.LEXICAL:
        hits = index.search_lexical(query.text, CANDIDATES_PER_SIDE, selection)
        bm25 = hits.scores.astype(np.float64)
        unknown = np.full_like(bm25, np.nan)
        return _alone(index, hits, bm25, bm25 / (bm25 + LEXICAL_HALF), unknown)
    if query.mode == RecallMode.DENSE:
        vectors = embedding()
        assert vectors is not None
        hits = index.search_dense(vectors[0], CANDIDATES_PER_SIDE, selection)
        cosine = hits.scores.astype(np.float64)
        return _alone(index, hits, cosine, np.clip(cosine, 0.0, 1.0), cosine)
    if parts := parts_of(query.filter.kinds):
        return search_sessions(
            index, query.text, embedding, selection,
            parts=parts, weights=query.weights, scale=scale,
        )  # fmt: skip
    return search_hybrid(index, query.text, embedding, selection, query.weights, scale=scale)


def _alone(
    index: CorpusIndex, hits: Hits, basis: Floats, scores: Floats, similarity: Floats
) -> Ranked:
    """Return the hits of one index, ranked by `basis`."""
    columns = index.columns
    order = ranked(basis, columns.timestamp_us[hits.rows], columns.doc_id[hits.rows])
    return Ranked(hits.rows[order], scores[order], similarity[order], full(hits))
