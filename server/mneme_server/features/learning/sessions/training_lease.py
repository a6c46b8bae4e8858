"""The lease by which one server changes a tenant's sessions, where several serve the same tenants.

It has a lease, and whatever it writes is checked against that in the store. Another that is told
something claims the lease: this one saves what it has in memory, lets go of it, and hands it over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mneme_server.common import fencing
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.common.fencing import OWN, Fence, LeaseLost, Leases

PATIENCE_S = 5.0
"""How long a call waits for another server to hand a tenant's sessions over."""
_RETRY_S = 1.0


class TrainingLease:
    """This server as the one that changes sessions. Thread-safe.

    Args:
        leases: say whether it is.
    """

    def __init__(self, leases: Leases = OWN) -> None:
        self._leases = leases
        self._lock = threading.Lock()  # Guards what follows.
        self._known: dict[str, Fence] = {}  # Under which the sessions in memory were opened.

    def trains(self, tenant_id: str) -> bool:
        """Tell whether this server changes the tenant's sessions; it does from now on where no
        other does.

        Raises:
            Unavailable: it cannot be told now.
        """
        return self._leases.hold(tenant_id) is not None

    def trained_last(self, tenant_id: str) -> bool:
        """Tell whether this server changes the tenant's sessions, as far as it knows."""
        return self._leases.holds(tenant_id)

    @contextmanager
    def lead(
        self, tenant_id: str, patience_s: float, others_had: Callable[[str], object]
    ) -> Iterator[None]:
        """Change the tenant's sessions in the block.

        Args:
            tenant_id: the tenant.
            patience_s: how long another server is waited for that has them.
            others_had: called with the tenant where another server had them since the last time. It
                must not wait for the store.

        Raises:
            Unavailable: it did not hand them over in time; or it took them over meanwhile, and
                nothing was written.
            Abandoned: nobody waits for the call any more.
        """
        fence = self._leases.claim(tenant_id, patience_s)
        if fence is None:
            raise Unavailable(
                f"another server has the learning sessions of the tenant {tenant_id}, and has not"
                " handed them over yet",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=_RETRY_S,
            )
        with self._lock:  # Nobody uses what others had before all of it is let go of.
            if self._known.get(tenant_id) != fence:
                others_had(tenant_id)
                self._known[tenant_id] = fence
        try:
            with fencing.under(fence):
                yield
        except LeaseLost:
            self._leases.lost(fence)
            raise

    @contextmanager
    def leaving(self, tenant_id: str) -> Iterator[None]:
        """Save in the block what the sessions in memory have learned, for the last time."""
        with self._lock:
            fence = self._known.pop(tenant_id, None)
        if fence is None:
            yield
        else:
            with fencing.under(fence):
                yield
