"""Copies of sessions that are asked something and told nothing: any server does that."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mneme_server.common.keyed_locks import KeyedLocks
from mneme_server.features.learning.algorithms.algorithm import Algorithm
from mneme_server.features.learning.model import LearningSession
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    opened,
    unknown,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.store.sessions import SqlLearningSessions

FRESH_S = 0.5
"""A copy is compared with what is stored when it is older."""
_WORTH = 20
"""It is made again after so many times what making it took, at the soonest."""


class _SessionCopy:
    """A session as another server has it, and how it was stored when it was made."""

    def __init__(self, live: LiveSession, stored: object, took_s: float) -> None:
        self.live = live
        self.stored = stored
        self.users = 0
        self.is_used_up = False
        self.made_s = self.looked_s = time.monotonic()
        self.worth_s = _WORTH * took_s


class SessionCopies:
    """Lends sessions to ask them something. Thread-safe.

    Args:
        sessions: those in memory of this server.
        algorithm: returns an algorithm by its name, or None.
        most: copies in all.
    """

    def __init__(
        self, sessions: OpenSessions, algorithm: Callable[[str], Algorithm | None], most: int
    ) -> None:
        self._sessions = sessions
        self._algorithm = algorithm
        self._most = most
        self._lock = threading.Lock()  # Guards what follows.
        self._copies: OrderedDict[tuple[str, str], _SessionCopy] = OrderedDict()
        self._making = KeyedLocks[tuple[str, str]]()

    @contextmanager
    def use(self, tenant: Tenant, session_id: str) -> Iterator[LiveSession]:
        """Lend a session for the block, which changes nothing of it.

        Raises:
            NotFound: there is none.
            FailedPrecondition: this server cannot run it.
            DataLoss: what it has learned is damaged.
            Unavailable: the store cannot be reached now.
        """
        if self._sessions.lease.trains(tenant.tenant_id):
            with self._sessions.use(tenant, session_id) as live:
                yield live
            return
        copy = self._lent(tenant, session_id)
        try:
            yield copy.live
        finally:
            with self._lock:
                copy.users -= 1
            self._let_go(copy)

    def forget(self, tenant_id: str) -> None:
        """Forget the copies of a tenant's sessions."""
        with self._lock:
            keys = [key for key in self._copies if key[0] == tenant_id]
            gone = [self._copies.pop(key) for key in keys]
        for copy in gone:
            copy.is_used_up = True
            self._let_go(copy)

    def _lent(self, tenant: Tenant, session_id: str) -> _SessionCopy:
        key = (tenant.tenant_id, session_id)
        with self._lock:
            found = self._fresh(key)
            if found is not None:
                return found
        with self._making.holding(key):
            with self._lock:
                found, known = self._fresh(key), self._copies.get(key)
            return found or self._looked(tenant, session_id, known)

    def _fresh(self, key: tuple[str, str]) -> _SessionCopy | None:
        """Return a copy that was compared lately. Holds the lock."""
        copy = self._copies.get(key)
        if copy is None or time.monotonic() - copy.looked_s >= FRESH_S:
            return None
        copy.users += 1
        return copy

    def _looked(self, tenant: Tenant, session_id: str, known: _SessionCopy | None) -> _SessionCopy:
        """Return a copy that is as what is stored, or is too dear to be made again already."""
        looked_s = time.monotonic()
        with tenant.read() as unit:
            session = unit.get(SqlLearningSessions).get(session_id)
        if session is None:
            raise unknown(session_id)
        stored = _stored(session)
        if known is not None and known.live.session.number == session.number:
            soon = looked_s - known.made_s < known.worth_s
            if known.stored == stored or (soon and not known.is_used_up):
                known.looked_s = looked_s
                known.live.session = session
                with self._lock:
                    known.users += 1
                return known
        live = opened(tenant, session_id, self._algorithm)
        live.policy.draw_apart()
        copy = _SessionCopy(live, stored, time.monotonic() - looked_s)
        copy.looked_s, copy.users = looked_s, 1
        self._keep((tenant.tenant_id, session_id), copy)
        return copy

    def _keep(self, key: tuple[str, str], copy: _SessionCopy) -> None:
        gone = []
        with self._lock:
            if key in self._copies:
                gone.append(self._copies.pop(key))
            self._copies[key] = copy
            while len(self._copies) > self._most:
                gone.append(self._copies.popitem(last=False)[1])
        for one in gone:
            one.is_used_up = True
            self._let_go(one)

    def _let_go(self, copy: _SessionCopy) -> None:
        with self._lock:
            over = copy.is_used_up and not copy.users
        if over:
            copy.live.close()


def _stored(session: LearningSession) -> object:
    """Return what tells a session from what it was: what was told, and what was saved of it."""
    return session.number, session.status, session.counts, session.progress, session.version
