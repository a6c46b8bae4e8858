"""Reading sessions, events and agents back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.corpus.tenant import OpenTenants
from mneme_server.events.model import Agent, Event, EventFilter, Session, SessionFilter
from mneme_server.events.ports import EventsUnit
from mneme_server.events.sessions import session_not_found


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """Answers questions about what was recorded."""

    tenants: OpenTenants[EventsUnit]

    def session(self, tenant_id: str, session_id: str) -> Session:
        """Return the session.

        Raises:
            NotFound: there is no such session.
        """
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            session = unit.sessions.get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def sessions(
        self, tenant_id: str, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Session], int]:
        """Return sessions, latest start first, after (started_us, id); and how many match."""
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            return unit.sessions.page(filter_, after, limit), unit.sessions.count(filter_)

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
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            return unit.events.page(filter_, after, limit, descending=descending)

    def agents(self, tenant_id: str, after: str | None, limit: int) -> Sequence[Agent]:
        """Return agents by id, after that id."""
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            return unit.agents.page(after, limit)
