"""Past sessions: the latest, those like another, what is known of them, and their timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import turns
from mneme_server.common.clock import DAY_US
from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import (
    WHOLE,
    CorpusIndex,
    Matrix,
    Rows,
    Scores,
    Selection,
    TextEmbedder,
)
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.model import SESSION, PastSession, Related
from mneme_server.features.context.store.handovers import SqlHandovers
from mneme_server.features.context.store.summaries import SqlSummaries
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.model import Session
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions

MIN_SIMILARITY = 0.35
"""About where unrelated summaries end under the default model."""
SIMILARITY_WEIGHT = 0.6
RECENCY_WEIGHT = 0.3
IMPORTANCE_WEIGHT = 0.1
FULL_IMPORTANCE = 10
"""Progress and decisions from which a session is as important as can be."""
MEASURED = 20_000
"""Up to so many sessions each one is measured; of more only the most similar `NEAREST`."""
NEAREST = 1_000
_LOOKED_UP = 200
DECAY_DAYS = 30.0
_GATHERED = 5_000
_NO_ROWS: Rows = np.empty(0, np.int64)


def document_filter(filter_: ActivityFilter, kind: MemoryKind = SESSION) -> DocumentFilter:
    """Return the filter for the documents of these sessions."""
    return DocumentFilter(
        kinds=frozenset({kind}),
        agent_id=filter_.agent_id,
        user_id=filter_.user_id,
        project=filter_.project,
        start_us=filter_.start_us,
        end_us=filter_.end_us,
        shared=filter_.shared,
    )


def load(unit: CorpusUnit, session_ids: Collection[str]) -> dict[str, PastSession]:
    """Return what is known of these sessions, by id; those that are gone, and those that no agent
    ran, are left out."""
    sessions = unit.get(SqlSessions).get_many(session_ids)
    summaries = unit.get(SqlSummaries).get_many(session_ids)
    handovers = unit.get(SqlHandovers).get_many(session_ids)
    return {
        key: PastSession(session, summaries.get(key), handovers.get(key))
        for key, session in sessions.items()
        if not session.system
    }


def source_ids(unit: CorpusUnit, index: CorpusIndex, rows: Rows) -> list[str]:
    """Return the sessions of rows of the index; "" for those that were removed meanwhile."""
    doc_ids = [int(doc_id) for doc_id in index.columns.doc_id[rows]]
    known = unit.get(SqlSummaries).sessions_of(doc_ids)
    return [known.get(doc_id, "") for doc_id in doc_ids]


def latest(unit: CorpusUnit, index: CorpusIndex, filter_: ActivityFilter, limit: int) -> list[str]:
    """Return the sessions with a summary that were active last, the latest first."""
    rows = np.flatnonzero(index.select(document_filter(filter_)).mask)
    times, doc_ids = index.columns.timestamp_us[rows], index.columns.doc_id[rows]
    newest = rows[np.lexsort((-doc_ids, -times))[:limit]]
    return [key for key in source_ids(unit, index, newest) if key]


def vectors_of(unit: CorpusUnit, embedder: TextEmbedder, texts: Sequence[str]) -> dict[str, Matrix]:
    """Return the vectors (d,) of summaries, by text; those that are stored cost no inference.

    What has none and cannot be embedded soon is left out.
    """
    stored = unit.queue.known_vectors(texts)
    known = {text: vectors[WHOLE] for text, vectors in stored.items()}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    made = embedder.embed(missing) if missing else None
    if made is not None:
        known |= dict(zip(missing, made, strict=True))
    return known


def nearest(
    index: CorpusIndex, vector: Matrix, selection: Selection, limit: int
) -> tuple[Rows, Scores]:
    """Return the selected rows nearest to a vector (d,), the best first, with their cosines."""
    if selection.count > _GATHERED:
        return index.search_dense(vector, limit, selection, exact=False)
    # To look at each of a few is faster than to search among all for them.
    rows = np.flatnonzero(selection.mask)
    cosines = np.nan_to_num(index.similarities(vector, rows), nan=-1.0)
    best = np.lexsort((-index.columns.doc_id[rows], -cosines))[:limit]
    return rows[best], cosines[best]


def before(selection: Selection, index: CorpusIndex, at_us: int) -> Selection:
    """Return the rows of a selection that lie before a time."""
    mask = selection.mask & (index.columns.timestamp_us[: len(selection.mask)] < at_us)
    return Selection(mask, int(np.count_nonzero(mask)), everything=False)


def related_to(
    unit: CorpusUnit,
    index: CorpusIndex,
    vector: Matrix,
    filter_: ActivityFilter,
    *,
    without: str,
    min_similarity: float,
    limit: int,
    now_us: int,
) -> tuple[list[Related], int]:
    """Return the sessions that resemble a vector (d,), the best first, and how many there are.

    The rank is 0.6 similarity + 0.3 recency + 0.1 importance. Every session is measured; their
    importance is looked up in the order of the other two terms, until none of the rest can reach
    the last one wanted.
    """
    selection = index.select(document_filter(filter_))
    rows, similarity = _measured(index, vector, selection)
    enough = similarity >= min_similarity
    rows, similarity = rows[enough], similarity[enough]
    age_us = np.maximum(now_us - index.columns.timestamp_us[rows], 0)
    recent = 1.0 / (1.0 + age_us / DAY_US / DECAY_DAYS)
    partial = SIMILARITY_WEIGHT * similarity + RECENCY_WEIGHT * recent
    order = np.lexsort((-index.columns.doc_id[rows], -partial))
    best: list[tuple[float, int, str, float]] = []
    for start in range(0, len(order), _LOOKED_UP):
        some = order[start : start + _LOOKED_UP]
        if len(best) >= limit and partial[some[0]] + IMPORTANCE_WEIGHT <= best[-1][0]:
            break
        ids = source_ids(unit, index, rows[some])
        weights = unit.get(SqlHandovers).weights([key for key in ids if key])
        for place, key in zip(some.tolist(), ids, strict=True):
            if key and key != without:
                share = importance(weights.get(key, 0))
                score = float(partial[place]) + IMPORTANCE_WEIGHT * share
                best.append((score, place, key, share))
        best.sort(key=lambda item: (-item[0], item[1]))
        del best[limit:]
    known = load(unit, [key for _, _, key, _ in best])
    found = [
        Related(known[key], float(similarity[place]), float(recent[place]), share, score)
        for score, place, key, share in best
        if key in known
    ]
    return found, selection.count


def _measured(
    index: CorpusIndex, vector: Matrix, selection: Selection
) -> tuple[Rows, NDArray[np.float64]]:
    """Return rows and their cosines, those without a vector left out."""
    if selection.count > MEASURED:
        hits = index.search_dense(vector, NEAREST, selection, exact=False)
        return hits.rows, hits.scores.astype(np.float64)
    rows = np.flatnonzero(selection.mask)
    cosines = index.similarities(vector, rows).astype(np.float64)
    known = ~np.isnan(cosines)
    return rows[known], cosines[known]


def recency(at_us: int, now_us: int) -> float:
    """Return 1 / (1 + age in days / 30); 1 for what is new or in the future."""
    return 1.0 / (1.0 + max(0, now_us - at_us) / DAY_US / DECAY_DAYS)


def importance(weight: int) -> float:
    """Return min(progress and decisions, counted, over 10; 1)."""
    return min(weight / FULL_IMPORTANCE, 1.0)


@dataclass(frozen=True, slots=True)
class SessionLink:
    """An earlier session that one resembles, with the cosine of both summaries."""

    session_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A session in its time."""

    past: PastSession
    related: Sequence[SessionLink]


@dataclass(frozen=True, slots=True)
class GetTimeline:
    """Lists sessions with their links to earlier ones."""

    tenants: OpenTenants
    embedder: TextEmbedder

    def entries(
        self,
        tenant_id: str,
        filter_: ActivityFilter,
        after: tuple[int, str] | None,
        limit: int,
        links: int,
    ) -> list[TimelineEntry]:
        """Return sessions, latest start first, after the key (started_us, id).

        A session is linked to at most `links` sessions of its project that had ended before it
        started, the most similar first, from `MIN_SIMILARITY`. One search a session with a
        summary: the cost grows with the page, not with the project's past.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            with turns.computing(limit / turns.SMALL):
                sessions = unit.get(SqlActivity).page(filter_, after, limit)
                known = load(unit, [session.id for session in sessions])
            told = [past for past in known.values() if past.summary is not None]
            index = tenant.index
            vectors = vectors_of(unit, self.embedder, [_text(past) for past in told])
            told = [past for past in told if _text(past) in vectors]

            def earlier(past: PastSession) -> tuple[Rows, Scores]:
                of_project = ActivityFilter(project=past.session.project, user_id=filter_.user_id)
                return _earlier(index, past.session, of_project, vectors[_text(past)], links)

            found = turns.each(earlier, told)
            rows = np.concatenate([near for near, _ in found]) if found else _NO_ROWS
            names = dict(zip(rows.tolist(), source_ids(unit, index, rows), strict=True))
        linked = {
            past.session.id: [
                SessionLink(names[row], score)
                for row, score in zip(near.tolist(), scores.tolist(), strict=True)
                if names[row] not in ("", past.session.id)
            ]
            for past, (near, scores) in zip(told, found, strict=True)
        }
        return [
            TimelineEntry(known[session.id], linked.get(session.id, ()))
            for session in sessions
            if session.id in known
        ]


def _text(past: PastSession) -> str:
    assert past.summary is not None
    return past.summary.text


def _earlier(
    index: CorpusIndex, session: Session, filter_: ActivityFilter, vector: Matrix, links: int
) -> tuple[Rows, Scores]:
    """Return the rows of the sessions that one goes back to, with their cosines."""
    earlier = before(index.select(document_filter(filter_)), index, session.started_us)
    rows, cosines = nearest(index, vector, earlier, links)
    near = cosines >= MIN_SIMILARITY
    return rows[near], cosines[near]
