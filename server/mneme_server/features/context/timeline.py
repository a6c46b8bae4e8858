"""GetTimeline: sessions in time, and what each of them goes back to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Rows, Scores, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.scheduling.foreground import PART, Foreground, size_of
from mneme_server.features.context.model import PastSession
from mneme_server.features.context.ports import ContextUnit
from mneme_server.features.context.sessions import (
    MIN_SIMILARITY,
    before,
    document_filter,
    load,
    nearest,
    source_ids,
    vectors_of,
)
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.model import Session

_NO_ROWS: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Link:
    """An earlier session that one resembles, with the cosine of both summaries."""

    session_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A session in its time."""

    past: PastSession
    related: Sequence[Link]


@dataclass(frozen=True, slots=True)
class GetTimeline:
    """Lists sessions with their links to earlier ones."""

    tenants: OpenTenants[ContextUnit]
    embedder: TextEmbedder
    foreground: Foreground = field(default_factory=Foreground)

    def __call__(
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
            with self.foreground.computing(size_of(limit), cost=limit / PART):
                sessions = unit.activity.page(filter_, after, limit)
                known = load(unit, [session.id for session in sessions])
            told = [past for past in known.values() if past.summary is not None]
            index = tenant.index
            vectors = vectors_of(unit, self.embedder, [_text(past) for past in told])
            told = [past for past in told if _text(past) in vectors]

            def earlier(past: PastSession) -> tuple[Rows, Scores]:
                of_project = ActivityFilter(project=past.session.project, user_id=filter_.user_id)
                return _earlier(index, past.session, of_project, vectors[_text(past)], links)

            found = self.foreground.each(earlier, told)
            rows = np.concatenate([near for near, _ in found]) if found else _NO_ROWS
            names = dict(zip(rows.tolist(), source_ids(unit, index, rows), strict=True))
        linked = {
            past.session.id: [
                Link(names[row], score)
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
