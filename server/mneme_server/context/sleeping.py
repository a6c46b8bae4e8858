"""Sleep: what a session leaves to the next, found at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition
from mneme_server.context.documents import session_document
from mneme_server.context.handover import handover_text
from mneme_server.context.model import Handover
from mneme_server.context.ports import ContextUnit
from mneme_server.context.reading import read_notes
from mneme_server.context.summarizing import SessionNotes, duration_s, summarize
from mneme_server.corpus.document import Scope
from mneme_server.corpus.tenant import Tenants
from mneme_server.events.model import Agent, Session, SessionStatus
from mneme_server.events.summaries import SummarySchedule
from mneme_server.learn.ports import TextEmbedder

_LAST_PRIORITY = 6


@dataclass(frozen=True, slots=True)
class Sleep:
    """Stores handovers."""

    tenants: Tenants[ContextUnit]
    embedder: TextEmbedder
    summaries: SummarySchedule

    def __call__(self, tenant_id: str, given: Handover) -> Handover:
        """Store the session's handover, end the session, and summarise it.

        Tools, duration, summary and time are filled in. The same content again changes nothing,
        other content replaces the handover.

        Raises:
            FailedPrecondition: the session belongs to another project or agent.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is stored.
        """
        session_id = given.session_id
        with self.tenants.open(tenant_id) as memory:
            with memory.read() as unit:
                before = unit.sessions.get(session_id)
                known = unit.handovers.get_many([session_id]).get(session_id)
            notes = read_notes(memory, session_id)
            now = now_us()
            session = _ended(before, given, now)
            handover = _completed(given, session, notes, now)
            if known is not None and replace(handover, created_us=known.created_us) == known:
                handover = known
            summary = summarize(session, notes, handover, now)
            vectors = self.embedder.embed([summary.text])  # Before the lock: it may take long.
            if vectors is None:
                memory.require_room(1)
            due_us: int | None = None
            with memory.write() as unit:
                current = unit.sessions.get(session_id)
                if current != before:
                    # Events arrived meanwhile: the summary will be made again with them.
                    session = _ended(current, given, now)
                unit.sessions.save([session])
                if current is None and session.agent_id:
                    unit.agents.add_activity({session.agent_id: _first_seen(session)})
                elif current is not None and _moved(current, session):
                    unit.documents.set_session(
                        session_id,
                        user_id=session.user_id,
                        project=session.project,
                        tags=session.tags,
                    )
                unit.handovers.save(handover)
                unit.summaries.save([summary])
                unit.documents.remove(Scope.SESSION, [session_id])
                unit.documents.add([session_document(session, summary)], vectors)
                if current != before:
                    due_us = self.summaries.session_changed(unit, session, now)
                else:
                    unit.summary_queue.finish([session_id])
            if due_us is not None:
                self.summaries.wake(tenant_id, due_us)
        return handover


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
        session = replace(session, status=SessionStatus.COMPLETED, ended_us=now)
    return session


def _completed(given: Handover, session: Session, notes: SessionNotes, now: int) -> Handover:
    handover = replace(
        given,
        project=session.project,
        agent_id=session.agent_id,
        open_todos=tuple(
            sorted(given.open_todos, key=lambda todo: todo.priority or _LAST_PRIORITY)
        ),
        tools=tuple(name for name, _ in notes.tools.most_common()),
        duration_s=duration_s(session, notes),
        created_us=now,
    )
    return replace(handover, summary=handover_text(handover))


def _moved(before: Session, after: Session) -> bool:
    return before.project != after.project


def _first_seen(session: Session) -> Agent:
    return Agent(
        session.agent_id,
        first_seen_us=session.started_us,
        last_seen_us=session.started_us,
        session_count=1,
    )
