"""The search for memories by meaning, with filters on what they carry."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mneme_server.common import turns
from mneme_server.common.passages import is_long
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Selection
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.memory.model import MEMORY, FoundMemory, MemoryFilter
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.recall.long_texts import bearing_most
from mneme_server.features.recall.search import QueryEmbedder

GATHERED = 100
"""Memories that a search gathers."""
SIMILARITY_SHARE, UPLIFT_SHARE = 0.7, 0.3
"""What similarity and uplift count for where memories are reranked."""


class UpliftReader(Protocol):
    """What causal edges say of memories and other things."""

    def uplifts(self, kind: str, ids: Collection[str]) -> Mapping[str, float]:
        """Return what those of these things (by kind and id) of which edges say something surely
        enough change, by id."""
        ...


@dataclass(frozen=True, slots=True)
class FoundMemories:
    """What a search found, best first, and what it took in seconds.

    `matches` counts those gathered that are similar enough; `capped` when there may be more.
    """

    results: Sequence[FoundMemory]
    matches: int
    capped: bool
    searched: int
    pending: int
    index_mode: str
    embedding_s: float
    search_s: float
    rerank_s: float
    partial: bool


class SearchTimes:
    """How long searches took, by tenant, since the server started. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, tuple[int, float]] = {}

    def add(self, tenant_id: str, took_s: float) -> None:
        """Count a search."""
        with self._lock:
            count, together = self._of.get(tenant_id, (0, 0.0))
            self._of[tenant_id] = (count + 1, together + took_s)

    def of(self, tenant_id: str) -> tuple[int, float]:
        """Return how many searches there were, and the seconds that they took together."""
        with self._lock:
            return self._of.get(tenant_id, (0, 0.0))


@dataclass(frozen=True, slots=True)
class SearchMemories:
    """The use case: search memories by meaning."""

    tenants: OpenTenants
    embedder: QueryEmbedder
    times: SearchTimes = field(default_factory=SearchTimes)

    def search(
        self,
        tenant_id: str,
        query: str,
        filter_: MemoryFilter,
        *,
        limit: int,
        min_similarity: float,
        rerank: bool = False,
        shared: bool = False,
    ) -> FoundMemories:
        """Return the memories whose vectors are closest to the query's; with `rerank` those of the
        closest that are best by similarity and by what causal edges say of them; with `shared` also
        those of no user, agent or project, where the filter names one.

        Raises:
            EmbeddingError: the embedding backend failed.
        """
        with self.tenants.open(tenant_id) as tenant:
            began = time.perf_counter()
            pending = self.embedder.begin([query])  # Before it stands in line.
            with turns.computing():
                vector = turns.outside(pending)[0]
                embedded = time.perf_counter()
                waiting = tenant.pending  # Before the search: what comes meanwhile may be missed.
                index = tenant.index
                selection = _selected(tenant, index, filter_, shared=shared)
                # One more, to tell whether there are more.
                hits = index.search_dense(vector, GATHERED + 1, selection, exact=False)
                near = hits.scores >= min_similarity
                rows, scores = hits.rows[near], hits.scores[near]
                columns = index.columns
                order = np.lexsort((-columns.doc_id[rows], -columns.timestamp_us[rows], -scores))
                best = order[:GATHERED] if rerank else order[:limit]
                doc_ids = columns.doc_id[rows[best]].tolist()
                with tenant.read() as unit:
                    memories = unit.get(SqlMemories).by_document(doc_ids)
                    searched = reranked = time.perf_counter()
                    results = [
                        FoundMemory(memories[doc_id], float(score))
                        for doc_id, score in zip(doc_ids, scores[best], strict=True)
                        if doc_id in memories  # It may have been deleted since it was found.
                    ]
                    if rerank:
                        results = _reranked(unit, results)[:limit]
                        reranked = time.perf_counter()
                row_of = {
                    memories[doc_id].id: row
                    for doc_id, row in zip(doc_ids, rows[best].tolist(), strict=True)
                    if doc_id in memories
                }
                results = [
                    _with_passage(index, query, vector, one, row_of[one.memory.id])
                    for one in results
                ]
        self.times.add(tenant_id, searched - embedded)
        return FoundMemories(
            results=results,
            matches=min(len(rows), GATHERED),
            capped=len(rows) > GATHERED,
            searched=selection.count,
            pending=waiting,
            index_mode=tenant.index_mode,
            embedding_s=embedded - began,
            search_s=searched - embedded,
            rerank_s=reranked - searched,
            partial=index.partial,
        )


def _with_passage(
    index: CorpusIndex, query: str, vector: Matrix, found: FoundMemory, row: int
) -> FoundMemory:
    """Return a memory, which has this row, with what of it bears most on the query, where it is
    long."""
    text = found.memory.text
    if not is_long(text):
        return found
    passage = bearing_most(text, query, index.each_similarity(vector, row))
    return found if passage is None else replace(found, passage=passage.quoted(text))


def _reranked(unit: CorpusUnit, found: Sequence[FoundMemory]) -> list[FoundMemory]:
    """Return memories, the best by similarity and uplift first; of equal ones the closer one."""
    uplifts = unit.get(UpliftReader).uplifts(MEMORY.name, [one.memory.id for one in found])
    scored = [
        replace(one, uplift=uplift, score=_score(one.similarity, uplift or 0.0))
        for one in found
        for uplift in (uplifts.get(one.memory.id),)
    ]
    return sorted(scored, key=lambda one: -(one.score or 0.0))


def _score(similarity: float, uplift: float) -> float:
    return SIMILARITY_SHARE * similarity + UPLIFT_SHARE * min(1.0, max(-1.0, uplift))


def _selected(
    tenant: OpenTenant, index: CorpusIndex, filter_: MemoryFilter, *, shared: bool
) -> Selection:
    """Return the rows that a filter picks: what the index knows by itself, the rest by the store's
    word."""
    base = DocumentFilter(
        kinds=frozenset({MEMORY}),
        user_id=filter_.user_id,
        agent_id=filter_.agent_id,
        project=filter_.project,
        start_us=filter_.start_us,
        end_us=filter_.end_us,
        tags=frozenset(filter_.tags),
        any_tags=frozenset(filter_.any_tags),
        include_archived=filter_.include_superseded,
        shared=shared,
    )
    selection = index.select(base)
    if not filter_.values or not selection.count:
        return selection
    mask = selection.mask
    for span in filter_.values:
        with tenant.read() as unit:
            doc_ids = np.array(unit.get(SqlMemories).doc_ids(span), np.int64)
        rows = index.columns.rows_of(doc_ids)
        valued = np.zeros(len(mask), np.bool_)
        valued[rows[(rows >= 0) & (rows < len(mask))]] = True
        mask = mask & valued
    rows = np.flatnonzero(mask)
    return Selection(mask, rows.size, everything=False, listed=rows)
