"""Sessions in memory, opened when they are first used, parked when others are used more; and how
long a tenant's may learn in a day.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from mneme_server.common import deadline
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import DataLoss, Reason, ResourceExhausted, Unavailable
from mneme_server.common.keyed_locks import KeyedLocks
from mneme_server.features.learning.algorithms.algorithm import Algorithm
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    day_of,
    opened,
)
from mneme_server.features.learning.sessions.training_lease import PATIENCE_S, TrainingLease
from mneme_server.features.learning.store.sessions import SqlLearningSessions

_HELD_S = 30.0
"""How long a call waits until what is being erased is."""
_RETRY_S = 1.0
_DAY_S = 86_400


class OpenSessions:
    """The sessions in memory of all tenants. Thread-safe.

    Args:
        algorithm: returns an algorithm by its name, or None.
        most: of a tenant; the one that was used longest ago is parked for another.
        lease: says whether this server is the one that changes a tenant's sessions.
    """

    def __init__(
        self,
        algorithm: Callable[[str], Algorithm | None],
        most: int,
        lease: TrainingLease | None = None,
    ) -> None:
        self._algorithm = algorithm
        self._most = most
        self.lease = lease or TrainingLease()
        self._opening = KeyedLocks[tuple[str, str]]()
        self._lock = threading.Lock()  # Guards what follows.
        self._released = threading.Condition(self._lock)
        self._held: Counter[str] = Counter()  # How often all are held, by tenant.
        self._open: dict[str, OrderedDict[str, LiveSession]] = {}
        self._outdated_count: dict[str, int] = {}  # How often all were outdated, by tenant.

    @contextmanager
    def use(self, tenant: Tenant, session_id: str) -> Iterator[LiveSession]:
        """Lend a session for the block, opening it if need be.

        Raises:
            NotFound: there is none.
            FailedPrecondition: this server cannot run it.
            DataLoss: what it has learned is damaged.
            Unavailable: another server has it in memory, and does not hand it over in time.
        """
        with self.leading(tenant.tenant_id):
            live = self._take(tenant, session_id)
            try:
                self._park_surplus(tenant)
                yield live
            finally:
                with self._lock:
                    live.users -= 1

    def leading(
        self, tenant_id: str, patience_s: float = PATIENCE_S
    ) -> AbstractContextManager[None]:
        """Have this server be the one that changes a tenant's sessions, in the block.

        Raises:
            Unavailable: another one does, and does not hand them over in time.
        """
        return self.lease.lead(tenant_id, patience_s, self._outdated)

    def find(self, tenant_id: str, session_id: str) -> LiveSession | None:
        """Return a session if it is in memory, to look at it."""
        if not self.lease.trained_last(tenant_id):
            return None  # It is older than what is stored.
        with self._lock:
            return self._open.get(tenant_id, OrderedDict()).get(session_id)

    def all_of(self, tenant_id: str) -> list[LiveSession]:
        """Return the tenant's sessions in memory."""
        with self._lock:
            return list(self._open.get(tenant_id, OrderedDict()).values())

    def drop(self, tenant_id: str, live: LiveSession) -> None:
        """Forget a session without saving it."""
        with self._lock:
            sessions = self._open.get(tenant_id, OrderedDict())
            if sessions.get(live.id) is live:
                del sessions[live.id]
        live.close()

    def nobody_opening(self, tenant_id: str, session_id: str) -> AbstractContextManager[None]:
        """Have nobody bring a session into memory in the block, which does not use it either."""
        return self._opening.holding((tenant_id, session_id))

    def forget(self, tenant_id: str) -> None:
        """Forget a tenant's sessions without saving them."""
        for live in self.all_of(tenant_id):
            self.drop(tenant_id, live)

    @contextmanager
    def held(self, tenant_id: str) -> Iterator[Callable[[], None]]:
        """Have nothing recorded or saved of a tenant's sessions while the block runs: those that
        are in no memory come there once it is left. It calls what it is given once steps were
        erased: then all are read again when they are used.
        """
        with ExitStack() as holding:
            with self._lock:
                self._held[tenant_id] += 1
            holding.callback(self._release, tenant_id)
            for live in sorted(self.all_of(tenant_id), key=lambda live: live.id):
                holding.enter_context(deadline.holding(live.telling))

            yield partial(self._outdated, tenant_id)

    def park_all(self, tenant: Tenant) -> None:
        """Save a tenant's sessions and forget them: it is about to be closed."""
        with self.lease.leaving(tenant.tenant_id):
            for live in self.all_of(tenant.tenant_id):
                try:
                    with live.telling:
                        live.save(tenant)
                finally:
                    self.drop(tenant.tenant_id, live)

    def _outdated(self, tenant_id: str) -> None:
        """Forget a tenant's sessions, those that are being opened included: what is stored is not
        what was read."""
        with self._lock:
            self._outdated_count[tenant_id] = self._outdated_count.get(tenant_id, 0) + 1
        self.forget(tenant_id)

    def _release(self, tenant_id: str) -> None:
        with self._lock:
            self._held -= Counter([tenant_id])  # Forgets whose are held no more.
            self._released.notify_all()

    def _wait_while_held(self, tenant_id: str) -> None:
        """Return once nobody holds the tenant's sessions. Holds the lock.

        Raises:
            Unavailable: that takes long.
            Abandoned: nobody waits for the call any more.
        """
        if not deadline.wait_for(self._released, lambda: not self._held[tenant_id], _HELD_S):
            raise Unavailable(
                f"something of the tenant {tenant_id} is being forgotten, which takes long",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=_RETRY_S,
            )

    def _take(self, tenant: Tenant, session_id: str) -> LiveSession:
        key = (tenant.tenant_id, session_id)
        with self._lock:
            live = self._lent(key)
            if live is not None:
                return live
        with self._opening.holding(key):
            with self._lock:
                live = self._lent(key)
            return live or self._opened_for(tenant, session_id)

    def _opened_for(self, tenant: Tenant, session_id: str) -> LiveSession:
        while True:
            before = self._outdated_count.get(tenant.tenant_id, 0)
            try:
                live = opened(tenant, session_id, self._algorithm)
            except DataLoss:
                with self._lock:
                    self._wait_while_held(tenant.tenant_id)
                    if before == self._outdated_count.get(tenant.tenant_id, 0):
                        raise
                continue  # Steps that it counts were erased before they were read.
            with ExitStack() as unless_kept:
                unless_kept.callback(live.close)
                with self._lock:
                    self._wait_while_held(tenant.tenant_id)  # Who holds the others erases, perhaps.
                    if before == self._outdated_count.get(tenant.tenant_id, 0):
                        live.users += 1
                        self._open.setdefault(tenant.tenant_id, OrderedDict())[session_id] = live
                        unless_kept.pop_all()
                        return live
                # What it was read from is not what is stored any more.

    def _lent(self, key: tuple[str, str]) -> LiveSession | None:
        sessions = self._open.get(key[0])
        live = None if sessions is None else sessions.get(key[1])
        if live is None or sessions is None:
            return None
        sessions.move_to_end(key[1])
        live.users += 1
        return live

    def _park_surplus(self, tenant: Tenant) -> None:
        with self._lock:
            sessions = self._open.get(tenant.tenant_id, OrderedDict())
            surplus = len(sessions) - self._most
            idle = [live for live in sessions.values() if not live.users][: max(0, surplus)]
        for live in idle:
            self._park(tenant, live)

    def _park(self, tenant: Tenant, live: LiveSession) -> None:
        """Save a session and forget it, unless somebody uses it."""
        with self._lock:
            sessions = self._open.get(tenant.tenant_id, OrderedDict())
            if live.users or sessions.get(live.id) is not live:
                return
            live.users += 1  # Nobody else parks it.
        try:
            with live.telling:
                live.save(tenant)
                with self._lock:
                    used = live.users > 1
                    if not used and sessions.get(live.id) is live:  # Else it was dropped before.
                        del sessions[live.id]
        finally:
            with self._lock:
                live.users -= 1
        if not used:
            live.close()


class TrainingQuota:
    """Checks that a tenant's sessions may go on learning.

    Args:
        sessions: those in memory, which know what is not saved yet.
        most_s: seconds of a day (UTC) that the sessions of a tenant may learn, all together.
    """

    def __init__(self, sessions: OpenSessions, most_s: int) -> None:
        self._sessions = sessions
        self._most_s = most_s

    def wait_s(self, tenant: Tenant) -> float:
        """Return in how many seconds they may learn: 0 if there is time left today."""
        now = now_us()
        with tenant.read() as unit:
            saved_us = unit.get(SqlLearningSessions).trained_us(day_of(now))
        unsaved_us = sum(live.unsaved_us for live in self._sessions.all_of(tenant.tenant_id))
        if saved_us + unsaved_us < self._most_s * MICROSECONDS:
            return 0.0
        return _DAY_S - now / MICROSECONDS % _DAY_S

    def require(self, tenant: Tenant) -> None:
        """Check that there is time left.

        Raises:
            ResourceExhausted: there is none today.
        """
        wait_s = self.wait_s(tenant)
        if wait_s:
            raise ResourceExhausted(
                f"the tenant's sessions have learned for {self._most_s:,} seconds today (UTC), as"
                " long as they may (MNEME_LEARNING_SECONDS); nothing was recorded or learned. They"
                " still predict",
                reason=Reason.QUOTA_EXCEEDED,
                retry_after_s=wait_s,
            )
