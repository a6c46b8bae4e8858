"""Leases of tenants' background work, where several servers serve the same tenants.

The lease of a tenant's work is taken before the first step, and kept until the tenant is closed
with nothing left to do. Whoever finds work for a tenant whose lease another server holds has that
one told. Nothing rests on what is remembered here: whatever a step writes is checked against the
lease in the store (`common.fencing`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

import structlog

from mneme_server.common import deadline
from mneme_server.common.errors import MnemeError, Reason, Unavailable
from mneme_server.common.fencing import Fence
from mneme_server.engine.corpus.nodes import Node

_ELSEWHERE_S = 1.0
"""How long is relied on that another server holds a lease: whoever it is is told of the work."""
_RETRY_S = 1.0
_TRIED_EVERY_S = 0.1
_LOCKS = 64
_KEPT_S = 1.0
"""For how long a lease that is handed over on demand is kept at least, however many want it."""
_LEFT_S = 3 * _TRIED_EVERY_S
"""For how long one that was given up is left to who claims it, however many want it here."""

_log = structlog.get_logger(__name__)


class NodeLeases:
    """The leases of one server. Thread-safe.

    Args:
        node: the server.
        prefix: what the names of the leases begin with, before the tenant.
        on_demand: whether the holder gives a lease up to whoever claims it, instead of doing what
            others find to do.
    """

    def __init__(self, node: Node, prefix: str = "", *, on_demand: bool = False) -> None:
        self._node = node
        self._prefix = prefix
        self._on_demand = on_demand
        self._since_s: dict[str, float] = {}
        self._taking = [threading.Lock() for _ in range(_LOCKS)]  # Each for some of the tenants.
        self._lock = threading.Lock()  # Guards what follows; never held while the store is asked.
        self._held: dict[str, Fence] = {}
        self._elsewhere: dict[str, float] = {}
        self._left_until_s: dict[str, float] = {}  # Those that are, or were just, given up.
        self._wanted: set[str] = set()
        self._alive_until_s = self._asked_s = float("-inf")
        self.taken = self.lost_count = 0
        """How many were taken since the start, and how many of them another server took over."""

    def alive(self, asked_s: float) -> None:
        """Note that the store was told at this time, by the monotonic clock, that this server
        lives."""
        self._alive_until_s = asked_s + self._node.lives_s

    def hold(self, tenant_id: str) -> Fence | None:
        """Return the lease of a tenant's work, which is taken if it is free; None where another
        server holds it, which will be told that there is work.

        Raises:
            Unavailable: the store cannot be reached, or does not know that this server lives.
        """
        now = self._asked_s = time.monotonic()
        self._require_alive(now)
        with self._lock:
            held = self._held.get(tenant_id)
            if held is not None:
                return held
            if now < self._left_until_s.get(tenant_id, float("-inf")):
                return None
            if now - self._elsewhere.get(tenant_id, float("-inf")) < _ELSEWHERE_S:
                self._want(tenant_id)
                return None
        # One at a time: who takes it again, in the same server, too, ends the lease before it.
        with self._taking[hash(tenant_id) % len(self._taking)]:
            held = self._held.get(tenant_id)
            if held is not None:
                return held
            taken = self._node.take(self.name_of(tenant_id), tenant_id)
            with self._lock:
                if taken is None:
                    self._elsewhere[tenant_id] = now
                    self._want(tenant_id)
                else:
                    self._held[tenant_id] = taken
                    self._since_s[tenant_id] = time.monotonic()
                    self._elsewhere.pop(tenant_id, None)
                    self._left_until_s.pop(tenant_id, None)
                    self.taken += 1
            return taken

    def claim(self, tenant_id: str, patience_s: float) -> Fence | None:
        """Return the lease, for which its holder is asked, and waited for; None if that takes
        longer. Of leases that are handed over on demand.

        Raises:
            Unavailable: as `hold`.
            Abandoned: nobody waits for the call any more.
        """
        until = time.monotonic() + patience_s
        while True:
            with self._lock:
                self._elsewhere.pop(tenant_id, None)
            held = self.hold(tenant_id)
            if held is not None or time.monotonic() >= until:
                return held
            with self._lock:
                self._wanted.add(tenant_id)
            deadline.check()
            threading.Event().wait(_TRIED_EVERY_S)

    def give_up(self, tenant_id: str, let_go: Callable[[str], object]) -> None:
        """Hand a lease over to whoever claims it, once `let_go` has let go of what it is of; not if
        it was taken just now: they will ask again. Nobody has it here meanwhile."""
        with self._lock:
            held = self._held.get(tenant_id)
            if held is None or time.monotonic() - self._since_s[tenant_id] < _KEPT_S:
                return
            fence = self._let_go_of(held)
            self._left_until_s[tenant_id] = float("inf")
        try:
            let_go(tenant_id)
        finally:
            self.give_back(fence)
            with self._lock:
                self._left_until_s[tenant_id] = time.monotonic() + _LEFT_S

    def was_asked(self, within_s: float) -> bool:
        """Tell whether somebody asked for a lease here so many seconds ago, or less."""
        return time.monotonic() - self._asked_s < within_s

    def name_of(self, tenant_id: str) -> str:
        """Return what the lease of a tenant is called."""
        return self._prefix + tenant_id

    def _want(self, tenant_id: str) -> None:
        """Have who holds it told, unless that is for who claims it. Holds the lock."""
        if not self._on_demand:
            self._wanted.add(tenant_id)

    def take(self, name: str, tenant_id: str) -> Fence | None:
        """Take the lease of a piece of work of its own, for `give_back`, unless another server
        holds it that lives.

        Raises:
            As `hold`.
        """
        self._require_alive(time.monotonic())
        return self._node.take(name, tenant_id)

    def give_back(self, fence: Fence) -> None:
        """Let another server take the lease."""
        try:
            self._node.release(fence)
        except MnemeError as error:  # It stays this server's, which takes it again.
            _log.warning("a lease was not released", work=fence.name, error=error.message)

    def _require_alive(self, now: float) -> None:
        if now >= self._alive_until_s:
            raise Unavailable(
                "the database could not be told that this server lives",
                reason=Reason.DATABASE_ERROR,
                retry_after_s=_RETRY_S,
            )

    def holds(self, tenant_id: str) -> bool:
        """Tell whether the lease is held here, as far as is known."""
        return tenant_id in self._held

    def held(self) -> Collection[str]:
        """Return the tenants whose leases are held here."""
        with self._lock:
            return list(self._held)

    def lost(self, fence: Fence) -> None:
        """Note that another server has taken over."""
        with self._lock:
            if self._held.get(fence.tenant_id) == fence:
                self._let_go_of(fence)
                self.lost_count += 1

    def release(self, tenant_id: str) -> None:
        """Let another server take the lease, if it is held here."""
        with self._lock:
            fence = self._held.get(tenant_id)
            if fence is not None:
                self._let_go_of(fence)
        if fence is not None:
            self.give_back(fence)

    def _let_go_of(self, fence: Fence) -> Fence:
        """Hold a lease no more. Holds the lock."""
        del self._since_s[fence.tenant_id]
        return self._held.pop(fence.tenant_id)

    def wanted(self) -> Collection[str]:
        """Return, once, the tenants that there is work for whose leases others hold."""
        with self._lock:
            wanted, self._wanted = self._wanted, set()
            return wanted

    def free(self, tenants: Collection[str]) -> None:
        """Note that nobody who lives holds the leases of these tenants."""
        with self._lock:
            for tenant_id in tenants:
                self._elsewhere.pop(tenant_id, None)
