"""Work of tenants that is due at a time, though nobody calls: known while they are closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.engine.background.tenant_worker import TenantWorker
from mneme_server.engine.corpus.tenant import OpenTenant

_RESTORED_US = 5 * MICROSECONDS
"""How long after a tenant is closed to be replaced it is looked at: by then it is."""


class Due(Protocol):
    """When work of tenants is due, of all tenants, in the catalog."""

    def all(self, work: str) -> Mapping[str, int]:
        """Return when it is due, by tenant."""
        ...

    def set(self, tenant_id: str, work: str, due_us: int | None) -> None:
        """Note when it is due; None: never."""
        ...

    def drop(self, tenant_id: str) -> None:
        """Forget a tenant."""
        ...


class DueWorker(TenantWorker):
    """A worker whose tenants' turns are noted in the catalog when they are closed.

    So a server that starts opens none of them before its time. One whose process was killed is
    opened at once: it may have turns that nobody noted.

    Args:
        work: as of `TenantWorker`; the catalog has it under this name.
        due: where the turns are noted.
    """

    def __init__(self, work: str, due: Due) -> None:
        super().__init__(work, thread=work)
        self._kind = work
        self._due = due
        self._noted: dict[str, int] = {}

    def resume(self) -> None:
        """Wait for the turns that were noted."""
        self._noted = dict(self._due.all(self._kind))
        for tenant_id, due_us in self._noted.items():
            self.wake(tenant_id, due_us)

    def look_again(self) -> None:
        """See `TenantWorker`."""
        self.resume()

    def closing(self, tenant: OpenTenant) -> None:
        """Note the turn of a tenant that is about to be closed."""
        tenant_id, due_us = tenant.tenant_id, self.due_of(tenant.tenant_id)
        if due_us == self._noted.get(tenant_id) or not self.is_mine(tenant_id):
            return
        self._due.set(tenant_id, self._kind, due_us)
        if due_us is None:
            self._noted.pop(tenant_id, None)
        else:
            self._noted[tenant_id] = due_us

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has work that is not noted: it must be opened at the start."""
        if not super().is_waiting(tenant_id):
            return False
        due_us, noted_us = self.due_of(tenant_id), self._noted.get(tenant_id)
        return due_us is None or noted_us is None or due_us < noted_us

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """Look at a tenant that was put back; forget one that is deleted."""
        if replaced:
            self.wake(tenant_id, now_us() + _RESTORED_US)
        else:
            self._noted.pop(tenant_id, None)
