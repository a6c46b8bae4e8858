"""Who changes a tenant's sessions next sees nothing of what they were before another server did."""

from __future__ import annotations

import threading

from mneme_server.common.fencing import Fence
from mneme_server.features.learning.sessions.training_lease import TrainingLease

PATIENCE_S = 60.0


class Held:
    """The lease of a server that was handed back to it."""

    def __init__(self) -> None:
        self.claims = threading.Semaphore(0)

    def hold(self, tenant_id: str) -> Fence:
        return Fence(f"learning/{tenant_id}", tenant_id, "one", 7)

    def claim(self, tenant_id: str, patience_s: float) -> Fence:
        self.claims.release()
        return self.hold(tenant_id)

    def holds(self, tenant_id: str) -> bool:
        return True

    def lost(self, fence: Fence) -> None:
        raise AssertionError(fence)


def test_no_call_goes_on_before_what_another_server_had_is_let_go_of() -> None:
    leases = Held()
    lease, order, go_on = TrainingLease(leases), list[str](), threading.Event()

    def let_go(_tenant: str) -> None:
        assert go_on.wait(PATIENCE_S)
        order.append("let go")

    def call() -> None:
        with lease.lead("acme", PATIENCE_S, let_go):
            order.append("call")

    calls = [threading.Thread(target=call) for _ in range(2)]
    for one in calls:
        one.start()
    for _ in calls:
        assert leases.claims.acquire(timeout=PATIENCE_S)
    calls[1].join(0.2)  # One that does not wait is through by then.
    go_on.set()
    for one in calls:
        one.join(PATIENCE_S)
    assert order == ["let go", "call", "call"]
