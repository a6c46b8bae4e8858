"""Reading sessions, events and agents back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from mneme_server.common.pages import least_bytes
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.events.model import Agent, Event, EventFilter, Session, SessionFilter
from mneme_server.features.events.ports import EventsUnit
from mneme_server.features.events.sessions import session_not_found


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """Answers questions about what was recorded."""

    tenants: OpenTenants[EventsUnit]
    foreground: Foreground = field(default_factory=Foreground)

    def session(self, tenant_id: str, session_id: str) -> Session:
        """Return the session.

        Raises:
            NotFound: there is no such session.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            session = unit.sessions.get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def sessions(
        self, tenant_id: str, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Session], int]:
        """Return sessions, latest start first, after (started_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = self.foreground.read_page(
                partial(unit.sessions.page, filter_), after, limit, lambda s: (s.started_us, s.id)
            )
            return page, unit.sessions.count(filter_)

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
            return self.foreground.read_page(
                partial(unit.events.page, filter_, descending=descending),
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
            return self.foreground.read_page(unit.agents.page, after, limit, lambda agent: agent.id)
