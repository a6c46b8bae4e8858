"""Ports to what the use cases of events need from storage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.chain import ChainLink, ForgottenPlace, ForgottenSession
from mneme_server.features.events.model import Agent, Event, EventFilter, Session, SessionFilter


class SessionRepository(Protocol):
    """The tenant's sessions."""

    def get(self, session_id: str) -> Session | None:
        """Return the session, or None."""
        ...

    def get_many(self, session_ids: Collection[str]) -> dict[str, Session]:
        """Return those that exist, by id."""
        ...

    def save(self, sessions: Collection[Session]) -> None:
        """Insert or replace these sessions."""
        ...

    def page(
        self, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        """Return sessions, latest start first, that come after the key (started_us, id)."""
        ...

    def count(self, filter_: SessionFilter) -> int:
        """Return how many match."""
        ...

    def ids(self) -> Iterator[str]:
        """Return every session's id, in order."""
        ...


class EventRepository(Protocol):
    """The tenant's events."""

    def by_ids(self, event_ids: Collection[str]) -> dict[str, Event]:
        """Return those that exist, by id."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Insert events; they must be chained already."""
        ...

    def page(
        self,
        filter_: EventFilter,
        after: tuple[int, int] | None,
        limit: int,
        *,
        descending: bool,
    ) -> Sequence[Event]:
        """Return events by (timestamp_us, cursor) that come after that key."""
        ...

    def recorded_after(self, cursor: int, filter_: EventFilter, limit: int) -> Sequence[Event]:
        """Return events in the order of recording that come after the cursor."""
        ...

    def last_cursor(self) -> int:
        """Return the cursor of the event recorded last; 0 when there is none."""
        ...

    def chain(self, session_id: str, after_sequence: int, limit: int) -> Sequence[Event]:
        """Return a session's events in the order of their sequence, after that one."""
        ...


class ForgottenRepository(Protocol):
    """What is left of the tenant's forgotten events."""

    def known(self, event_ids: Collection[str]) -> Mapping[str, ForgottenPlace]:
        """Return the places of those of these events that were forgotten, by the events' ids."""
        ...

    def places(self, session: str, after_sequence: int, limit: int) -> Sequence[ForgottenPlace]:
        """Return the forgotten places of a session in the order of their sequence, after that
        one."""
        ...

    def session(self, session: str) -> ForgottenSession | None:
        """Return a session of which everything was forgotten, or None."""
        ...

    def sessions(self) -> Sequence[str]:
        """Return the sessions of which everything was forgotten."""
        ...

    def revive(self, session_id: str) -> ForgottenSession | None:
        """Return and remove a session of which everything was forgotten: it is used again, and its
        chain goes on where it was."""
        ...


class Witness(Protocol):
    """What else knows of what was recorded, and was signed: the tenant's log."""

    def against_all(self, tenant_id: str, tenant: OpenTenant[Any]) -> str:
        """Return what speaks against the tenant's log; empty: nothing."""
        ...

    def against_links(
        self, tenant_id: str, unit: Any, session: str, links: Sequence[ChainLink]
    ) -> tuple[int, str] | None:
        """Return the first of these links of a session's chain against which something speaks, by
        its place among them, and what; None: nothing does. The session is named by its digest."""
        ...

    def against_session(self, unit: Any, session_id: str, recallable: int) -> str:
        """Return what speaks against it that a session has so many events that can be recalled;
        empty: nothing."""
        ...


class AgentRepository(Protocol):
    """The tenant's agents."""

    def add_activity(self, activity: Mapping[str, Agent]) -> None:
        """Add these counters to the agents', creating those that are new."""
        ...

    def page(self, after: str | None, limit: int) -> Sequence[Agent]:
        """Return agents by id, after that id."""
        ...


class EventsUnit(CorpusUnit, Protocol):
    """One transaction, as far as events are concerned."""

    @property
    def sessions(self) -> SessionRepository:
        """The tenant's sessions."""
        ...

    @property
    def events(self) -> EventRepository:
        """The tenant's events."""
        ...

    @property
    def forgotten(self) -> ForgottenRepository:
        """What is left of forgotten events."""
        ...

    @property
    def agents(self) -> AgentRepository:
        """The tenant's agents."""
        ...
