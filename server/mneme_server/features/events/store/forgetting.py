"""Forgetting of events and sessions, and what is left of them, in a tenant's database."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, select

from mneme_server.common.clock import now_us
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.feed import ranges
from mneme_server.engine.corpus.forgetting import (
    AGENT,
    SESSION,
    TOUCHED,
    USER,
    ForgetFilter,
    ForgetSelection,
    Items,
    merged,
)
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, insert, listed
from mneme_server.engine.store.rows import chunks, equal_where_given, insert_rows
from mneme_server.engine.store.schema import documents
from mneme_server.features.events.chain import ForgottenPlace, ForgottenSession, digest_of
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.model import GRADE, user_in_json
from mneme_server.features.events.outcomes import judged, judged_by_grades, unjudged
from mneme_server.features.events.store.grades import SqlGrades
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.events.store.tables import (
    agents,
    events,
    forgotten_events,
    forgotten_sessions,
    session_grades,
    session_tags,
    sessions,
)

_places = forgotten_events.c
_sessions = forgotten_sessions.c
_SURELY_WRITTEN = re.compile("[0-9A-JL-Za-z]+")
"""What of a name is the same in JSON and in each of Unicode's forms (K may be a KELVIN SIGN)."""


class SqlForgotten:
    """What is left of the tenant's forgotten events."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._no_sessions = False
        """Known, as most tenants have none: every session that begins asks."""

    def known(self, event_ids: Collection[str]) -> Mapping[str, ForgottenPlace]:
        # Of nearly every tenant nothing was forgotten: every batch of events asks.
        """Return the places of those of these events that were forgotten, by the events' ids."""
        if _any().first(self._connection, {"tenant": self._tenant_id}) is None:
            return {}
        by_digest = {digest_of(event_id): event_id for event_id in event_ids}
        wanted = {"tenant": self._tenant_id, "wanted": array_of(by_digest)}
        return {by_digest[row.event]: _place(row) for row in _known().all(self._connection, wanted)}

    def places(self, session: str, after_sequence: int, limit: int) -> Sequence[ForgottenPlace]:
        """Return the forgotten places of a session in the order of their sequence, after that
        one."""
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
        """Return a session of which everything was forgotten, or None."""
        row = _session().first(self._connection, {"tenant": self._tenant_id, "which": session})
        if row is None:
            return None
        return ForgottenSession(row.session, row.event_count, row.head_hash, row.forgotten_at)

    def sessions(self) -> Sequence[str]:
        """Return the sessions of which everything was forgotten."""
        query = select(_sessions.session).where(_sessions.tenant_id == self._tenant_id)
        return list(self._connection.execute(query).scalars())

    def revive(self, session_id: str) -> ForgottenSession | None:
        """Return and remove a session of which everything was forgotten: it is used again, and its
        chain goes on where it was."""
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


class _Erased(NamedTuple):
    """An event that is erased: what its place in the chain is made of."""

    id: str
    sequence: int
    prev_hash: str
    hash: str
    hash_version: int
    commitment: bytes | None


class EventsForgetter(SqlForgetter):
    """Forgets sessions, events and agents.

    A session that is forgotten takes all of its events and grades along. Of each event its place in
    the chain stays, and of each session the end of its chain.
    """

    rows = (
        Rows(
            SESSION, sessions.c.id,
            user=sessions.c.user_id, agent=sessions.c.agent_id, project=sessions.c.project,
            tag=session_tags.c.tag,
        ),
        Rows(EVENT.name, events.c.id, agent=events.c.agent_id, document=EVENT),
        Rows(AGENT, agents.c.id, agent=agents.c.id),
        Rows(GRADE, session_grades.c.id, session=session_grades.c.session_id),
    )  # fmt: skip

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        super().__init__(connection, tenant_id)
        self._forgotten = SqlForgotten(connection, tenant_id)
        self._now_us = now_us()

    def named(self, selection: ForgetSelection) -> Items:
        """See `Forgetter`."""
        found = [super().named(selection)]
        if selection.session_id:
            found.append(super().named(_sessions_named(selection.session_id)))
        if selection.user_id:
            found.append({EVENT.name: self._of_user(selection.user_id)})
        if selection.filter is not None:
            found.append(self._passing(selection.filter))
        return merged(found)

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        gone: set[str] = set()
        for some in chunks(sorted(found.get(SESSION, ()))):
            gone |= self.select(events.c.id, events.c.session_id.in_(some))
        touched: set[str] = set()
        for some in chunks(sorted(found.get(EVENT.name, ()))):
            touched |= self.select(events.c.session_id, events.c.id.in_(some))
        for some in chunks(sorted(found.get(GRADE, ()))):
            touched |= self.select(session_grades.c.session_id, session_grades.c.id.in_(some))
        return merged([super().derived(found), {EVENT.name: gone, TOUCHED: touched}])

    def recallable(self, found: Items) -> Items:
        """See `Forgetter`. A grade has a leaf in the log, though it cannot be recalled."""
        return merged([super().recallable(found), {GRADE: found.get(GRADE, set())}])

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        gone = found.get(SESSION, set())
        by_session: dict[str, list[_Erased]] = defaultdict(list)
        for erased, session_id in self._erased(found.get(EVENT.name, set())):
            by_session[session_id].append(erased)
        for session_id, erased_ones in by_session.items():
            self._keep_places(session_id, erased_ones)
            self.places[digest_of(session_id)] = list(ranges([one.sequence for one in erased_ones]))
        ids = sorted(found.get(EVENT.name, ()))
        unit.documents.remove(EVENT, ids, named=False)
        self.count("events", -self.delete(events.c.id, ids))
        self._keep_ends(sorted(gone))
        self._erase_grades(found.get(GRADE, set()), gone)
        self.delete(session_tags.c.session_id, gone)
        self.count("sessions", -self.delete(sessions.c.id, gone))
        self.count("agents", -self.delete(agents.c.id, found.get(AGENT, set())))

    def _erase_grades(self, grade_ids: Collection[str], gone: Collection[str]) -> None:
        """Erase grades; what a session that stays turned out to be is what others said."""
        graded: set[str] = set()
        for some in chunks(sorted(grade_ids)):
            graded |= self.select(session_grades.c.session_id, session_grades.c.id.in_(some))
        self.delete(session_grades.c.id, grade_ids)
        left = sorted(graded.difference(gone))
        mine = self._connection, self._tenant_id
        grades = SqlGrades(*mine).of_sessions(left)
        kept = SqlSessions(*mine).get_many(left).values()
        SqlSessions(*mine).save(
            [judged_by_grades(judged(unjudged(one)), grades[one.id]) for one in kept]
        )

    def names(self, what: str) -> Iterator[str]:
        """See `Forgetter`."""
        yield from super().names(what)
        if what == USER:
            query = select(events.c.metadata).where(
                events.c.tenant_id == self._tenant_id, events.c.metadata.contains('"user')
            )
            for metadata in self._connection.execute(query).scalars():
                if user := user_in_json(metadata):
                    yield user

    def _of_user(self, user_id: str) -> set[str]:
        """Return the events that are a user's though their session may be another's."""
        found = set()
        query = select(documents.c.source_id).where(
            documents.c.tenant_id == self._tenant_id,
            documents.c.kind == EVENT.name,
            documents.c.user_id == user_id,
        )
        found |= set(self._connection.execute(query).scalars())
        # Those that cannot be recalled have no document.
        written = max(_SURELY_WRITTEN.findall(user_id), key=len, default="")
        named = select(events.c.id, events.c.metadata).where(
            events.c.tenant_id == self._tenant_id,
            events.c.metadata.contains('"user'),
            events.c.metadata.contains(written),
        )
        for row in self._connection.execute(named):
            if user_in_json(row.metadata) == user_id:
                found.add(row.id)
        return found

    def _passing(self, filter_: ForgetFilter) -> Items:
        """Return the sessions that a filter lets through, by when they began, and the events that
        cannot be recalled; those that can are found as documents are."""
        found: Items = {}
        attributes: list[ColumnElement[bool]] = []
        for tag in sorted(filter_.tags):
            tagged = select(session_tags.c.session_id).where(
                session_tags.c.tenant_id == self._tenant_id, session_tags.c.tag == tag
            )
            attributes.append(sessions.c.id.in_(tagged))
        attributes += equal_where_given(sessions.c, filter_, ("user_id", "project"))
        if filter_.session_id:
            attributes.append(sessions.c.id == filter_.session_id)
        if not filter_.kinds or SESSION in filter_.kinds:
            by_agent = [sessions.c.agent_id == filter_.agent_id] if filter_.agent_id else []
            when = _within(sessions.c.started_at, filter_)
            found[SESSION] = self.select(sessions.c.id, *attributes, *by_agent, *when)
        if not filter_.kinds or EVENT.name in filter_.kinds:
            of = select(sessions.c.id).where(sessions.c.tenant_id == self._tenant_id, *attributes)
            by_agent = [events.c.agent_id == filter_.agent_id] if filter_.agent_id else []
            found[EVENT.name] = self.select(
                events.c.id,
                events.c.searchable.is_(False),
                events.c.session_id.in_(of),
                *by_agent,
                *_within(events.c.timestamp, filter_),
            )
        return found

    def _erased(self, event_ids: set[str]) -> Iterator[tuple[_Erased, str]]:
        columns = events.c
        for some in chunks(sorted(event_ids)):
            query = select(
                columns.id, columns.sequence, columns.prev_hash, columns.hash,
                columns.hash_version, columns.commitment, columns.session_id,
            ).where(columns.tenant_id == self._tenant_id, columns.id.in_(some))  # fmt: skip
            for row in self._connection.execute(query):
                yield _Erased(*row[:-1]), row.session_id

    def _keep_places(self, session_id: str, erased: Sequence[_Erased]) -> None:
        session = digest_of(session_id)
        self._forgotten.add([
            ForgottenPlace(
                session, digest_of(one.id), one.sequence, one.prev_hash, one.hash,
                one.hash_version, bytes(one.commitment or b""), self._now_us,
            )
            for one in erased
        ])  # fmt: skip

    def _keep_ends(self, session_ids: Sequence[str]) -> None:
        for some in chunks(session_ids):
            query = select(sessions.c.id, sessions.c.event_count, sessions.c.head_hash).where(
                sessions.c.tenant_id == self._tenant_id, sessions.c.id.in_(some)
            )
            self._forgotten.add_sessions([
                ForgottenSession(digest_of(row.id), row.event_count, row.head_hash, self._now_us)
                for row in self._connection.execute(query)
            ])  # fmt: skip


def _sessions_named(session_id: str) -> ForgetSelection:
    return ForgetSelection(items={SESSION: frozenset({session_id})})


def _within(column: ColumnElement[int], filter_: ForgetFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filter_.start_us is not None:
        conditions.append(column >= filter_.start_us)
    if filter_.end_us is not None:
        conditions.append(column < filter_.end_us)
    return conditions


FORGETS = Forgets(
    EventsForgetter,
    {
        sessions: "deleted; the end of its chain stays in forgotten_sessions",
        session_tags: "deleted with their session",
        session_grades: "deleted with their session; the commitment stays in the log",
        events: "deleted; its place in the chain stays in forgotten_events",
        agents: "deleted when the agent is forgotten; the figures of others stay",
        forgotten_sessions: "holds what stays: no id, no content",
        forgotten_events: "holds what stays: no id, no content",
    },
)
