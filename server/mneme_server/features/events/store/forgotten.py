"""What is left of forgotten events, in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, select

from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, insert, listed
from mneme_server.engine.store.rows import insert_rows
from mneme_server.features.events.forgotten import ForgottenPlace, ForgottenSession, digest_of
from mneme_server.features.events.store.tables import forgotten_events, forgotten_sessions

_places = forgotten_events.c
_sessions = forgotten_sessions.c


class SqlForgotten:
    """Implements `ForgottenRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._no_sessions = False
        """Known, as most tenants have none: every session that begins asks."""

    def known(self, event_ids: Collection[str]) -> Mapping[str, ForgottenPlace]:
        # Of nearly every tenant nothing was forgotten: every batch of events asks.
        if _any().first(self._connection, {"tenant": self._tenant_id}) is None:
            return {}
        by_digest = {digest_of(event_id): event_id for event_id in event_ids}
        wanted = {"tenant": self._tenant_id, "wanted": array_of(by_digest)}
        return {by_digest[row.event]: _place(row) for row in _known().all(self._connection, wanted)}

    def places(self, session: str, after_sequence: int, limit: int) -> Sequence[ForgottenPlace]:
        query = (
            select(forgotten_events)
            .where(
                _places.tenant_id == self._tenant_id,
                _places.session == session,
                _places.sequence > after_sequence,
            )
            .order_by(_places.sequence)
            .limit(limit)
        )
        return [_place(row) for row in self._connection.execute(query)]

    def session(self, session: str) -> ForgottenSession | None:
        row = _session().first(self._connection, {"tenant": self._tenant_id, "which": session})
        if row is None:
            return None
        return ForgottenSession(row.session, row.event_count, row.head_hash, row.forgotten_at)

    def sessions(self) -> Sequence[str]:
        query = select(_sessions.session).where(_sessions.tenant_id == self._tenant_id)
        return list(self._connection.execute(query).scalars())

    def revive(self, session_id: str) -> ForgottenSession | None:
        if self._has_no_sessions():
            return None
        found = self.session(digest_of(session_id))
        if found is not None:
            self._connection.execute(
                delete(forgotten_sessions).where(
                    _sessions.tenant_id == self._tenant_id, _sessions.session == found.session
                )
            )
        return found

    def _has_no_sessions(self) -> bool:
        if not self._no_sessions:
            found = _any_session().first(self._connection, {"tenant": self._tenant_id})
            self._no_sessions = found is None
        return self._no_sessions

    def add(self, places: Sequence[ForgottenPlace]) -> None:
        """Keep places, in the stead of any that they had."""
        for place in places:
            row = {
                "tenant_id": self._tenant_id,
                "session": place.session,
                "sequence": place.sequence,
                "event": place.event,
                "prev_hash": place.prev_hash,
                "hash": place.hash,
                "hash_version": place.hash_version,
                "commitment": place.commitment,
                "forgotten_at": place.forgotten_us,
            }
            statement = insert(forgotten_events)
            excluded = statement.excluded
            self._connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["tenant_id", "session", "sequence"],
                    set_={name: excluded[name] for name in ("prev_hash", "hash", "hash_version")},
                ),
                row,
            )

    def add_sessions(self, sessions: Sequence[ForgottenSession]) -> None:
        """Keep the ends of the chains of sessions that are no more."""
        rows = [
            {
                "tenant_id": self._tenant_id,
                "session": one.session,
                "event_count": one.event_count,
                "head_hash": one.head_hash,
                "forgotten_at": one.forgotten_us,
            }
            for one in sessions
        ]
        if rows:
            insert_rows(self._connection, forgotten_sessions, rows)
            self._no_sessions = False


@reads("forgotten event", "sequence")
def _place(row: Row[Any]) -> ForgottenPlace:
    return ForgottenPlace(
        session=row.session,
        event=row.event,
        sequence=row.sequence,
        prev_hash=row.prev_hash,
        hash=row.hash,
        hash_version=row.hash_version,
        commitment=bytes(row.commitment),
        forgotten_us=row.forgotten_at,
    )


@cache
def _any() -> Prepared:
    return Prepared(
        select(_places.sequence).where(_places.tenant_id == bindparam("tenant")).limit(1)
    )


@cache
def _any_session() -> Prepared:
    return Prepared(
        select(_sessions.session).where(_sessions.tenant_id == bindparam("tenant")).limit(1)
    )


@cache
def _known() -> Prepared:
    return Prepared(
        select(forgotten_events).where(
            _places.tenant_id == bindparam("tenant"),
            _places.event.in_(listed(bindparam("wanted"))),
        )
    )


@cache
def _session() -> Prepared:
    return Prepared(
        select(forgotten_sessions).where(
            _sessions.tenant_id == bindparam("tenant"), _sessions.session == bindparam("which")
        )
    )
