"""Open tenants: lent to use cases, kept for a while, closed when idle.

A machine holds thousands of tenants of which few are busy at once. Files, connections and indexes
exist only for those.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

import structlog

from mneme_server.common import deadline, interpreter
from mneme_server.common.errors import NotFound, Reason, Unavailable
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.unit import Unit

U = TypeVar("U", bound=CorpusUnit)
_MEASURED_EVERY_S = 1.0
"""How often it is measured what an open tenant takes: it grows with what is written."""
_WORTH = 10
_QUICK_S = 0.05
"""For want of memory a tenant is closed that was not used for so many times what opening it took;
at once if that was quick."""
_SWEEP_S = 5.0
_PAUSE_S = 0.02
_CLOSE_S = 2.0
"""How long closing waits for tenants that are lent: no call runs any more by then."""
LONGEST_CALL_S = 30.0
"""How long calls may go on that began before something was hidden: as long as most may last."""

_log = structlog.get_logger(__name__)


class _Slot(Generic[U]):
    """A tenant's place in the registry, also while it opens or closes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # Held while the tenant opens or closes.
        self.tenant: OpenTenant[U] | None = None
        self.bytes = 0  # That it takes, as it was last measured.
        self.measured = float("-inf")
        self.opening_s = 0.0  # That it took to open.
        self.leases = 0
        self.lent: dict[int, None] = {}  # The leases by their numbers, the oldest first.
        self.last_used = time.monotonic()
        self.removed = False
        self.replaced = False  # Removed for a moment only: a backup takes its place.


class TenantRegistry(Generic[U]):
    """Lends tenants' memories. Thread-safe.

    Args:
        opener: opens a tenant; raises NotFound when there is no such tenant.
        memory_bytes: what the open tenants may take together; those are closed that were used
            longest ago. More is taken only by those that are in use.
        most: so many tenants at most stay open while they are idle: each has files open.
        idle_seconds: how long an unused tenant stays open.
        on_closed: called with a tenant after it was closed with nothing left to embed.
        on_removed: called with a tenant that was closed to be removed, and with whether it is
            replaced.
    """

    def __init__(
        self,
        opener: Callable[[str], OpenTenant[U]],
        *,
        memory_bytes: int,
        idle_seconds: float,
        most: int = 1_000_000,
        on_closed: Callable[[str], None] = lambda _tenant: None,
        on_removed: Callable[[str, bool], None] = lambda _tenant, _replaced: None,
    ) -> None:
        self._opener = opener
        self._memory_bytes = memory_bytes
        self._most = most
        self._held_bytes = 0
        self._lease = 0
        self._idle_seconds = idle_seconds
        self._on_closed = on_closed
        self._on_removed = on_removed
        self._slots: OrderedDict[str, _Slot[U]] = OrderedDict()
        self._lent: dict[str, None] = {}
        self._lock = threading.Lock()
        self._released = threading.Condition(self._lock)
        self._stopping = threading.Event()
        self._crowded = threading.Event()
        self._janitor = threading.Thread(target=self._sweep, name="tenant-janitor", daemon=True)
        self._janitor.start()

    def open(self, tenant_id: str) -> AbstractContextManager[OpenTenant[U]]:
        """Lend the tenant for the block, opening it if need be."""
        return self._lend(tenant_id, built=True)

    def open_at_once(self, tenant_id: str) -> AbstractContextManager[OpenTenant[U]]:
        """As `open`, also while the index is being built."""
        return self._lend(tenant_id, built=False)

    @contextmanager
    def _lend(self, tenant_id: str, *, built: bool) -> Iterator[OpenTenant[U]]:
        slot, lease = self._take(tenant_id)
        try:
            tenant = self._tenant_of(tenant_id, slot)
            if built:
                tenant.wait_until_built()
            yield tenant
        finally:
            with self._lock:
                slot.leases -= 1
                del slot.lent[lease]
                self._used(tenant_id, slot)
                self._measure(slot)
                crowded = self._is_crowded()
                self._released.notify_all()
            if crowded:  # Closing takes a while, and this call's answer is ready.
                self._crowded.set()

    def wait_for_leases(self, tenant_id: str, timeout_s: float) -> bool:
        """Wait until everybody has given the tenant back to whom it is lent now; tell whether they
        did in time."""
        with self._lock:
            slot, last = self._slots.get(tenant_id), self._lease
            return slot is None or self._released.wait_for(
                lambda: next(iter(slot.lent), last + 1) > last, timeout_s
            )

    @contextmanager
    def if_closed(self, tenant_id: str) -> Iterator[bool]:
        """Tell whether a tenant is closed; if so, nobody can open it inside the block.

        Raises:
            Unavailable: it is being deleted or replaced.
        """
        slot, _ = self._take(tenant_id, lent=False)
        try:
            with slot.lock:
                yield slot.tenant is None
        finally:
            with self._lock:
                slot.leases -= 1
                if not slot.leases and slot.tenant is None and not slot.removed:
                    self._forget(tenant_id, slot)
                self._released.notify_all()

    def open_tenants(self, only: Collection[str] | None = None) -> Sequence[OpenTenant[U]]:
        """Return the memories that are open now, or those of some tenants, for measuring; do not
        keep them."""
        with self._lock:
            if only is None:
                slots = list(self._slots.values())
            else:
                slots = [slot for name in only if (slot := self._slots.get(name)) is not None]
            return [slot.tenant for slot in slots if slot.tenant is not None]

    def in_use(self, within_s: float) -> Sequence[OpenTenant[U]]:
        """Return the memories that are lent, or were so many seconds ago or less; do not keep them.
        It takes as long as there are such, however many are open."""
        since_s = time.monotonic() - within_s
        with self._lock:
            chosen = list(self._lent)
            for tenant_id in reversed(self._slots):
                if self._slots[tenant_id].last_used < since_s:
                    break
                chosen.append(tenant_id)
        return self.open_tenants(dict.fromkeys(chosen))

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the open tenants take, as they were last measured."""
        return self._held_bytes

    @contextmanager
    def removing(
        self, tenant_id: str, timeout_s: float = 30.0, *, replaced: bool = False
    ) -> Iterator[None]:
        """Close a tenant; inside the block nobody can open it.

        Those who try are told that there is no such tenant; with `replaced`, to try again.

        Raises:
            Unavailable: calls of the tenant were still running after `timeout_s`.
        """
        with self._lock:
            slot = self._slots.setdefault(tenant_id, _Slot())
            if slot.removed:
                raise _busy(f"tenant {tenant_id} is being deleted or restored by another call")
            slot.removed, slot.replaced = True, replaced
            if slot.tenant is not None:
                slot.tenant.leave(replaced=replaced)
            try:
                left = deadline.wait_for(self._released, lambda: slot.leases == 0, timeout_s)
            except BaseException:
                self._stay(slot)
                raise
            if not left:
                self._stay(slot)
                raise _busy(f"calls of tenant {tenant_id} are still running")
        try:
            with slot.lock:
                with self._lock:
                    tenant = self._emptied(slot)
                self._close_tenant(tenant_id, tenant)
            self._on_removed(tenant_id, replaced)
            yield
        finally:
            with self._lock:
                self._forget(tenant_id, slot)

    def close(self) -> None:
        """Close every tenant. Waits a moment for those that are lent; what hangs is left open."""
        self._stopping.set()
        self._crowded.set()
        self._janitor.join()
        with self._lock:
            self._released.wait_for(
                lambda: all(slot.leases == 0 for slot in self._slots.values()), timeout=_CLOSE_S
            )
        self._close_idle(everything=True)

    def _take(self, tenant_id: str, *, lent: bool = True) -> tuple[_Slot[U], int]:
        with self._lock:
            if self._stopping.is_set():
                raise Unavailable(
                    "the server is shutting down",
                    reason=Reason.INITIALIZATION_FAILED,
                    retry_after_s=1.0,
                )
            slot = self._slots.get(tenant_id)
            if slot is None:
                slot = self._slots[tenant_id] = _Slot()
            if slot.replaced:
                raise _busy(f"tenant {tenant_id} is being restored, moved or embedded again")
            if slot.removed:
                raise NotFound(f"there is no tenant {tenant_id}")
            slot.leases += 1
            self._lease += 1
            if lent:
                slot.lent[self._lease] = None
                self._used(tenant_id, slot)
            return slot, self._lease

    def _used(self, tenant_id: str, slot: _Slot[U]) -> None:
        """Note that a tenant is used now: those used last come last. Holds the lock."""
        slot.last_used = time.monotonic()
        if slot.lent:
            self._lent[tenant_id] = None
        else:
            self._lent.pop(tenant_id, None)
        if self._slots.get(tenant_id) is slot:
            self._slots.move_to_end(tenant_id)

    def _tenant_of(self, tenant_id: str, slot: _Slot[U]) -> OpenTenant[U]:
        tenant = slot.tenant
        if tenant is None:
            # Opening takes a while. Other tenants do not wait for it, nor does who has no time.
            with deadline.holding(slot.lock):
                tenant = slot.tenant
                if tenant is None:
                    interpreter.leave_turn()
                    began = time.monotonic()
                    tenant = slot.tenant = self._opener(tenant_id)
                    slot.opening_s = time.monotonic() - began
            if slot.removed:  # It was not there to be told when the removal began.
                tenant.leave(replaced=slot.replaced)
        return tenant

    def _sweep(self) -> None:
        while not self._stopping.is_set():
            self._crowded.wait(min(_SWEEP_S, max(0.05, self._idle_seconds / 4)))
            self._crowded.clear()
            try:
                self._close_idle()
            except Exception:
                _log.exception("idle tenants could not be closed, will be tried again")
            self._stopping.wait(_PAUSE_S)  # Calls come more often than it is worth looking.

    def _close_idle(self, *, everything: bool = False) -> None:
        """Close tenants that nobody uses: the stale, and the least recently used if too many."""
        now = time.monotonic()
        with self._lock:
            surplus = len(self._slots) - self._most
            excess = self._held_bytes - self._memory_bytes
            chosen = []
            for tenant_id, slot in self._slots.items():
                if slot.leases or slot.removed:
                    continue
                idle_s = now - slot.last_used
                stale = idle_s > self._idle_seconds
                # What takes long to open again is not closed between two calls.
                pressed = excess > 0 and idle_s >= _WORTH * (slot.opening_s - _QUICK_S)
                if everything or stale or surplus > 0 or pressed:
                    chosen.append((tenant_id, slot))
                    surplus -= 1
                    excess -= slot.bytes
        for tenant_id, slot in chosen:
            with slot.lock:
                with self._lock:
                    if slot.leases or slot.removed:  # Taken again meanwhile.
                        continue
                    tenant = self._emptied(slot)
                # New leases now wait for slot.lock and open the tenant again.
                self._close_tenant(tenant_id, tenant)
            with self._lock:
                if not slot.leases and slot.tenant is None and not slot.removed:
                    self._forget(tenant_id, slot)

    def _is_crowded(self) -> bool:
        return self._held_bytes > self._memory_bytes or len(self._slots) > self._most

    def _measure(self, slot: _Slot[U]) -> None:
        """Note, once in a while, how much memory a tenant takes that is open. Holds the lock."""
        now = time.monotonic()
        if slot.tenant is not None and now - slot.measured >= _MEASURED_EVERY_S:
            taken = slot.tenant.memory_bytes
            self._held_bytes += taken - slot.bytes
            slot.bytes, slot.measured = taken, now

    def _emptied(self, slot: _Slot[U]) -> OpenTenant[U] | None:
        """Take the tenant out of its slot, to be closed. Holds both locks."""
        tenant, slot.tenant = slot.tenant, None
        self._held_bytes -= slot.bytes
        slot.bytes, slot.measured = 0, float("-inf")
        return tenant

    def _stay(self, slot: _Slot[U]) -> None:
        """Leave a tenant as it was that could not be removed."""
        slot.removed = slot.replaced = False
        if slot.tenant is not None:
            slot.tenant.stay()

    def _forget(self, tenant_id: str, slot: _Slot[U]) -> None:
        """Drop a slot, if it is still the tenant's: another may have taken its place."""
        if self._slots.get(tenant_id) is slot:
            del self._slots[tenant_id]

    def _close_tenant(self, tenant_id: str, tenant: OpenTenant[U] | None) -> None:
        if tenant is None:
            return
        try:
            tenant.close()
            if tenant.pending == 0:
                self._on_closed(tenant_id)
        except Exception:
            # What was acknowledged is in the database; the index is caught up at the next open.
            _log.exception("tenant did not close cleanly", tenant=tenant_id)


def _busy(problem: str) -> Unavailable:
    return Unavailable(f"{problem}; try again", reason=Reason.TRANSACTION_FAILED, retry_after_s=1.0)


class Scrubber:
    """Leaves nothing of what was deleted in tenants' files.

    Args:
        registry: lends the tenants.
    """

    def __init__(self, registry: TenantRegistry[Unit]) -> None:
        self._registry = registry

    def settle(self, tenant_id: str) -> None:
        """Wait until the calls have ended that are under way."""
        self._registry.wait_for_leases(tenant_id, LONGEST_CALL_S)

    def scrub(self, tenant_id: str) -> None:
        """Rewrite the tenant's database and index without what was deleted."""
        with self._registry.open(tenant_id) as tenant:
            tenant.scrub()
