"""Sessions: started, ended, and read back with their events and agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mneme_server.common import turns
from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, FailedPrecondition, NotFound, Reason
from mneme_server.common.identity import new_id
from mneme_server.common.pages import least_bytes
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.model import (
    Agent,
    Event,
    EventFilter,
    Session,
    SessionFilter,
    SessionStatus,
    user_in,
    user_in_json,
)
from mneme_server.features.events.outcomes import judged_by_metadata, judged_by_status
from mneme_server.features.events.recording import Committed, SessionListeners, opened
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions

_GRADED = "; how it turned out can be said at any time: GradeSession"


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session as a caller gives it. Empty and None fields were not given."""

    id: str = ""
    agent_id: str = ""
    agent_name: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    metadata: JsonObject | None = None
    started_us: int | None = None


@dataclass(frozen=True, slots=True)
class StartSession:
    """Starts sessions."""

    tenants: OpenTenants
    listeners: SessionListeners = field(default_factory=SessionListeners)

    def start(self, tenant_id: str, new: NewSession) -> Session:
        """Start the session, or complete one that its events opened.

        Raises:
            AlreadyExists: it was started with different content.
        """
        new = replace(new, user_id=new.user_id or user_in(new.metadata or {}))
        session_id = new.id or new_id()
        committed: Committed | None = None
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            known = unit.get(SqlSessions).get(session_id)
            if known is not None and known.declared:
                _require_same(known, new)
                return known
            session = _merged(known or opened(unit, session_id, now_us()), new)
            session = judged_by_metadata(session)
            unit.get(SqlSessions).save([session])
            unit.get(SqlAgents).add_activity(_activity(session, known))
            if session.user_id and (known is None or not known.user_id):
                unit.documents.set_user(session.id, session.user_id)
            if known is not None:
                if session.user_id or session.project or session.tags:
                    unit.documents.set_session(
                        EVENT,
                        session.id,
                        user_id=session.user_id,
                        project=session.project,
                        tags=session.tags,
                    )
                # Agent and metadata matter too: a reward says how it ended.
                committed = self.listeners.changed(unit, [session], now_us())
        if committed is not None:
            committed(tenant_id)
        return session


@dataclass(frozen=True, slots=True)
class EndSession:
    """Ends sessions."""

    tenants: OpenTenants
    listeners: SessionListeners = field(default_factory=SessionListeners)

    def end(
        self,
        tenant_id: str,
        session_id: str,
        status: SessionStatus,
        ended_us: int | None,
        *,
        observed: bool = False,
    ) -> Session:
        """End the session. Unless it is only `observed`, the status says how it turned out.

        Raises:
            NotFound: there is no such session.
            FailedPrecondition: it has ended with another status.
        """
        committed: Committed | None = None
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            session = unit.get(SqlSessions).get(session_id)
            if session is None:
                raise session_not_found(session_id)
            if session.status == SessionStatus.ACTIVE:
                ended = now_us() if ended_us is None else ended_us
                session = judged_by_status(
                    replace(session, status=status, ended_us=ended, observed=observed)
                )
                unit.get(SqlSessions).save([session])
                committed = self.listeners.changed(unit, [session], now_us())
            elif session.status == status and session.observed and not observed:
                # Somebody saw it end before its agent said so.
                session = judged_by_status(replace(session, observed=False))
                unit.get(SqlSessions).save([session])
                committed = self.listeners.changed(unit, [session], now_us())
            elif session.status != status:
                raise FailedPrecondition(
                    f"session {session_id} has ended with status {session.status.name}; how it"
                    " turned out can be said at any time: GradeSession",
                    field="status",
                )
        if committed is not None:
            committed(tenant_id)
        return session


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """Answers questions about what was recorded."""

    tenants: OpenTenants

    def session(self, tenant_id: str, session_id: str) -> Session:
        """Return the session.

        Raises:
            NotFound: there is no such session.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            session = unit.get(SqlSessions).get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def sessions(
        self, tenant_id: str, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Session], int]:
        """Return sessions, latest start first, after (started_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlSessions).page, filter_),
                after,
                limit,
                lambda s: (s.started_us, s.id),
            )
            return page, unit.get(SqlSessions).count(filter_)

    def events(
        self,
        tenant_id: str,
        filter_: EventFilter,
        after: tuple[int, int] | None,
        limit: int,
        *,
        descending: bool,
    ) -> Sequence[Event]:
        """Return events by time, after the key (timestamp_us, cursor)."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return turns.read_page(
                partial(unit.get(SqlEvents).page, filter_, descending=descending),
                after,
                limit,
                lambda event: (event.timestamp_us, event.cursor),
                lambda event: least_bytes(
                    len(event.text) + len(event.error),
                    len(event.payload_json) + len(event.metadata_json),
                ),
            )

    def agents(self, tenant_id: str, after: str | None, limit: int) -> Sequence[Agent]:
        """Return agents by id, after that id."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return turns.read_page(unit.get(SqlAgents).page, after, limit, lambda agent: agent.id)


def session_not_found(session_id: str) -> NotFound:
    """Return the error for a session that this tenant does not have."""
    return NotFound(
        f"there is no session {session_id!r}", reason=Reason.SESSION_NOT_FOUND, field="session_id"
    )


def _merged(session: Session, new: NewSession) -> Session:
    opened_by_events = session.event_count > 0
    started_us = session.started_us if opened_by_events else now_us()
    return replace(
        session,
        agent_id=new.agent_id or session.agent_id,
        agent_name=new.agent_name,
        user_id=new.user_id or session.user_id,  # Its events may have named one.
        project=new.project,
        tags=tuple(sorted(set(new.tags))),
        metadata_json=canonical_json(new.metadata or {}),
        started_us=started_us if new.started_us is None else new.started_us,
        declared=True,
        system=False,
    )


def _activity(session: Session, known: Session | None) -> dict[str, Agent]:
    """Return what the start of a session changes in its agent, and in the one it is taken from."""
    before = known.agent_id if known is not None else ""
    moved = before != session.agent_id
    counted = {session.agent_id: int(moved)} | ({before: -1} if moved else {})
    return {
        agent_id: Agent(
            agent_id,
            name=session.agent_name if agent_id == session.agent_id else "",
            first_seen_us=session.started_us,
            last_seen_us=session.started_us,
            session_count=count,
        )
        for agent_id, count in counted.items()
        if agent_id
    }


def _user(known: Session) -> str:
    return known.user_id or user_in_json(known.metadata_json)


def _require_same(known: Session, new: NewSession) -> None:
    given = {
        "agent_id": (new.agent_id, known.agent_id if new.agent_id else ""),
        "agent_name": (new.agent_name, known.agent_name),
        "user_id": (new.user_id, _user(known) if new.user_id else ""),
        "project": (new.project, known.project),
        "tags": (tuple(sorted(set(new.tags))), known.tags),
        "metadata": (canonical_json(new.metadata or {}), known.metadata_json),
    }
    differing = [name for name, (now, before) in given.items() if now != before]
    if new.started_us is not None and new.started_us != known.started_us:
        differing.append("started_at")
    if differing:
        raise AlreadyExists(
            f"session {known.id} was started with different content ({', '.join(differing)})"
            f"{_GRADED if 'metadata' in differing else ''}",
            field="session_id",
        )
