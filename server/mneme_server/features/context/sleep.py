"""Sleep: what a session leaves to the next, found at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition, NotFound, Reason
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.ports import TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.handover import (
    LISTS,
    Collector,
    given_part,
    handover_text,
    joined,
    sorted_by_priority,
)
from mneme_server.features.context.model import SESSION, Handover
from mneme_server.features.context.notes import SessionNotes, duration_s, event_pages
from mneme_server.features.context.store.handovers import SqlHandovers
from mneme_server.features.context.store.summaries import SqlSummaries, SqlSummaryQueue
from mneme_server.features.context.summaries import SummarySchedule, session_document, summarize
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.model import Agent, Session, SessionStatus
from mneme_server.features.events.outcomes import succeeded
from mneme_server.features.events.recording import Committed
from mneme_server.features.events.sessions import session_not_found
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions

_LAST_PRIORITY = 6


@dataclass(frozen=True, slots=True)
class StoredHandover:
    """A handover, and whether it was stored: one that hands over nothing is not."""

    handover: Handover
    stored: bool


@dataclass(frozen=True, slots=True)
class Sleep:
    """Stores handovers."""

    tenants: OpenTenants
    embedder: TextEmbedder
    summaries: SummarySchedule

    def store(self, tenant_id: str, given: Handover) -> StoredHandover:
        """Store the session's handover, end the session, and summarise it.

        What the session's events tell is joined to what is given; tools, duration, summary and
        time are filled in. The same content again changes nothing, other content replaces the
        handover, and none leaves what was given before. Without a session it is the latest of the
        project: see `_chosen`.

        Raises:
            NotFound: nothing is given, and there is no such session, or none in the project.
            FailedPrecondition: the session belongs to another project or agent.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is stored.
        """
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                session_id = given.session_id or _chosen(unit, given)
                before = unit.get(SqlSessions).get(session_id)
                known = unit.get(SqlHandovers).get_many([session_id]).get(session_id)
            given = _with_given_before(replace(given, session_id=session_id), before, known)
            notes, found = _read(tenant, session_id, before)
            now = now_us()
            session = _ended(before, given, now)
            handover = _completed(joined(given, found), session, notes, now)
            if known is not None and replace(handover, created_us=known.created_us) == known:
                handover = known
            stored = handover if handover.has_content else None
            summary = summarize(session, notes, stored, now)
            vectors = self.embedder.embed([summary.text])  # Before the lock: it may take long.
            if vectors is None:
                tenant.require_room(1)
            committed: Committed | None = None
            with tenant.write() as unit:
                current = unit.get(SqlSessions).get(session_id)
                unchanged = current == before
                if not unchanged:
                    session = _ended(current, given, now)
                _store_session(unit, current, session)
                if stored is not None:
                    unit.get(SqlHandovers).save(stored)
                unit.get(SqlSummaries).save([summary])
                unit.documents.remove(SESSION, [session_id])
                unit.documents.add([session_document(session, summary)], vectors)
                if unchanged:
                    unit.get(SqlSummaryQueue).finish([session_id])
                else:  # Events arrived meanwhile: the summary will be made again with them.
                    committed = self.summaries.changed(unit, [session], frozenset(), now)
            if committed is not None:
                committed(tenant_id)
        return StoredHandover(stored or replace(handover, created_us=0), stored is not None)


def _chosen(unit: CorpusUnit, given: Handover) -> str:
    """Return the session that a handover without one is of: the project's, and the agent's where
    one is named, that was active last.

    One that has been handed over and was not active since keeps its handover: the same content
    again is a retry, and other content is of a session that nobody recorded.

    Raises:
        NotFound: there is none, and nothing is given.
    """
    last = unit.get(SqlActivity).latest(
        ActivityFilter(project=given.project, agent_id=given.agent_id)
    )
    if last is None:
        if given.has_content:
            return new_id()
        raise NotFound(
            f"there is no session on project {given.project!r}, and nothing was given to hand over",
            reason=Reason.SESSION_NOT_FOUND,
            field="project",
        )
    known = unit.get(SqlHandovers).get_many([last.id]).get(last.id)
    if known is None or last.status == SessionStatus.ACTIVE or not given.has_content:
        return last.id
    recorded_us = unit.get(SqlActivity).recorded_us(last.id) or 0
    if recorded_us > known.created_us or _same_given(known, given):
        return last.id
    return new_id()


def _with_given_before(
    given: Handover, session: Session | None, known: Handover | None
) -> Handover:
    """Return what is given now, or, when that is nothing, what was given before.

    Raises:
        NotFound: nothing is given, and there is no such session.
    """
    if given.has_content:
        return given
    if session is None:
        raise session_not_found(given.session_id)
    if known is None:
        return given
    return replace(given_part(known), project=given.project, agent_id=given.agent_id)


def _read(
    tenant: OpenTenant, session_id: str, session: Session | None
) -> tuple[SessionNotes, Handover]:
    """Return the notes on a session's events, and the handover that they tell."""
    notes, collector = SessionNotes(), Collector()
    for page in event_pages(tenant, session_id):
        notes.add(page)
        collector.add(page)
    won = session is not None and succeeded(session)
    return notes, collector.handover(notes, session_id, succeeded=won)


def _same_given(known: Handover, given: Handover) -> bool:
    before, now = (sorted_by_priority(one, _LAST_PRIORITY) for one in (given_part(known), given))
    return all(getattr(before, kind) == getattr(now, kind) for kind in LISTS)


def _ended(known: Session | None, given: Handover, now: int) -> Session:
    """Return the session as the handover leaves it: ended, with project and agent where it had
    none."""
    session = known or Session(id=given.session_id, started_us=now)
    for name in ("project", "agent_id"):
        said, stored = getattr(given, name), getattr(session, name)
        if said and stored and said != stored:
            raise FailedPrecondition(
                f"session {session.id} belongs to {name.removesuffix('_id')} {stored!r}: leave"
                f" {name} empty, or name that one",
                field=name,
            )
    session = replace(
        session,
        project=session.project or given.project,
        agent_id=session.agent_id or given.agent_id,
    )
    if session.status == SessionStatus.ACTIVE:
        # Who hands over does not say how it turned out.
        session = replace(session, status=SessionStatus.COMPLETED, ended_us=now, observed=True)
    return session


def _completed(given: Handover, session: Session, notes: SessionNotes, now: int) -> Handover:
    handover = replace(
        sorted_by_priority(given, _LAST_PRIORITY),
        project=session.project,
        agent_id=session.agent_id,
        tools=tuple(name for name, _ in notes.tools.most_common()),
        duration_s=duration_s(session, notes),
        created_us=now,
    )
    return replace(handover, summary=handover_text(handover))


def _store_session(unit: CorpusUnit, before: Session | None, after: Session) -> None:
    """Store a session as its handover leaves it, and what follows from that elsewhere."""
    unit.get(SqlSessions).save([after])
    if after.agent_id and (before is None or not before.agent_id):
        unit.get(SqlAgents).add_activity({after.agent_id: _first_seen(after)})
    if before is not None and before.project != after.project:
        unit.documents.set_session(
            EVENT, after.id, user_id=after.user_id, project=after.project, tags=after.tags
        )


def _first_seen(session: Session) -> Agent:
    return Agent(
        session.agent_id,
        first_seen_us=session.started_us,
        last_seen_us=session.started_us,
        session_count=1,
    )
