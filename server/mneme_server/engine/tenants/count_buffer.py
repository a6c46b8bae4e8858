"""The buffer of counts, which calls gather in memory: a call that reads does not write.

They are written every half minute, and before a tenant is closed; until then they are added to what
is shown. A crash loses those of the last half minute and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import NotFound
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit

WRITTEN_EVERY_S = 30.0
"""How long counts wait in memory, in seconds: what a crash loses at most."""


class TenantCounts(Protocol):
    """Counts of one tenant. Made without arguments there are none."""

    def add(self, more: Self) -> None:
        """Add others to them."""
        ...


C = TypeVar("C", bound=TenantCounts)
U = TypeVar("U", bound=CorpusUnit)
T = TypeVar("T")


class CountBuffer(Generic[C, U]):
    """The counts of all tenants that are not written yet. Thread-safe.

    Args:
        none: makes counts of nothing.
        write: adds counts to those that are stored, in one transaction.
    """

    def __init__(self, none: Callable[[], C], write: Callable[[U, C], None]) -> None:
        self._none = none
        self._write = write
        self._gathered: dict[str, C] = {}
        self._being_written: dict[str, C] = {}
        self._lock = threading.Lock()
        self._writer: CountsWriter[C, U] | None = None

    def writer(self, tenants: OpenTenants[U], work: str, thread: str) -> CountsWriter[C, U]:
        """Return what writes the counts, and is woken from now on when there are some."""
        self._writer = CountsWriter(tenants, self, work, thread)
        return self._writer

    def add(self, tenant_id: str, counts: C) -> None:
        """Gather counts."""
        with self._lock:
            first = tenant_id not in self._gathered
            self._gathered.setdefault(tenant_id, self._none()).add(counts)
        if first and self._writer is not None:
            self._writer.wake(tenant_id, now_us() + int(WRITTEN_EVERY_S * MICROSECONDS))

    def waiting(self, tenant_id: str) -> C:
        """Return what is not written yet."""
        found = self._none()
        with self._lock:
            for place in (self._gathered, self._being_written):
                if tenant_id in place:
                    found.add(place[tenant_id])
        return found

    def of(self, tenant_id: str, pick: Callable[[C], T | None]) -> list[T]:
        """Return what `pick` finds in what is not written yet: for one thing's counts, which need
        not be added to all others'."""
        with self._lock:
            places = (self._gathered.get(tenant_id), self._being_written.get(tenant_id))
            picked = [pick(counts) for counts in places if counts is not None]
        return [one for one in picked if one is not None]

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has counts to write."""
        with self._lock:
            return tenant_id in self._gathered or tenant_id in self._being_written

    def write(self, tenant: OpenTenant[U]) -> None:
        """Write the tenant's counts."""
        tenant_id = tenant.tenant_id
        with self._lock:
            counts = self._gathered.pop(tenant_id, None)
            if counts is None:
                return
            self._being_written[tenant_id] = counts  # Still shown.
        try:
            with tenant.write() as unit:
                self._write(unit, counts)
        except BaseException:
            with self._lock:
                self._gathered.setdefault(tenant_id, self._none()).add(counts)
            raise
        finally:
            with self._lock:
                del self._being_written[tenant_id]

    def forget(self, tenant_id: str) -> None:
        """Forget the counts of a tenant that is gone."""
        with self._lock:
            self._gathered.pop(tenant_id, None)


class CountsWriter(TenantWorker, Generic[C, U]):
    """Writes the counts of each tenant that has some, a while after the first of them."""

    everywhere = True

    def __init__(
        self, tenants: OpenTenants[U], buffer: CountBuffer[C, U], work: str, thread: str
    ) -> None:
        super().__init__(work, thread)
        self._tenants = tenants
        self._buffer = buffer

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has counts to write: closing it has written them."""
        return self._buffer.is_waiting(tenant_id)

    def step(self, tenant_id: str) -> int | None:
        """Write the tenant's counts, if there are any."""
        if self._buffer.is_waiting(tenant_id):
            try:
                with self._tenants.open(tenant_id) as tenant:
                    self._buffer.write(tenant)
            except NotFound:
                self._buffer.forget(tenant_id)
        return None
