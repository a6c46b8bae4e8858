"""Leave to write what background work came to, where several servers might do the same work.

Who does a tenant's background work holds a lease of it. Every transaction that the work writes
names the lease, and the store refuses it once another server has taken the work over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from mneme_server.common.errors import Reason, Unavailable

_RETRY_S = 1.0


class Fence(NamedTuple):
    """A lease: of which work, of which tenant's, which server does it, and a number that no other
    lease of it has. The work that is called as its tenant is all that recurs. `node` is "" where
    there is one server, and nobody who could take it over."""

    name: str
    tenant_id: str
    node: str
    number: int


class LeaseLost(Unavailable):
    """Another server has taken over the work; nothing was written."""

    def __init__(self) -> None:
        super().__init__(
            "another server does this tenant's background work now; nothing was written",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )


class Leases(Protocol):
    """Says whose a tenant's work is, where several servers may do it."""

    def hold(self, tenant_id: str) -> Fence | None:
        """Return the lease of a tenant's work, which is taken if it is free; None where another
        server holds it, which will be told that there is work.

        Raises:
            Unavailable: it cannot be told now.
        """
        ...

    def claim(self, tenant_id: str, patience_s: float) -> Fence | None:
        """Return the lease, for which its holder is asked, and waited for; None if that takes
        longer.

        Raises:
            Unavailable: it cannot be told now.
            Abandoned: nobody waits for the call any more.
        """
        ...

    def holds(self, tenant_id: str) -> bool:
        """Tell whether the lease is held here, as far as is known."""
        ...

    def lost(self, fence: Fence) -> None:
        """Note that another server has taken over."""
        ...

    def release(self, tenant_id: str) -> None:
        """Let another server take the lease, if it is held here."""
        ...

    def take(self, name: str, tenant_id: str) -> Fence | None:
        """Take the lease of a piece of a tenant's work, unless another server holds it that lives.

        Raises:
            Unavailable: it cannot be told now.
        """
        ...

    def give_back(self, fence: Fence) -> None:
        """Let another server take the lease of a piece of work."""
        ...


class OwnLeases:
    """The leases of the only server: all of them."""

    def hold(self, tenant_id: str) -> Fence:
        """Return a lease that nobody else could have."""
        return Fence(tenant_id, tenant_id, "", 0)

    def claim(self, tenant_id: str, patience_s: float) -> Fence:
        """Return it; nobody has to be waited for."""
        return self.hold(tenant_id)

    def holds(self, tenant_id: str) -> bool:
        """Say so."""
        return True

    def lost(self, fence: Fence) -> None:
        """Keep it: nobody takes over."""

    def release(self, tenant_id: str) -> None:
        """Keep it."""

    def take(self, name: str, tenant_id: str) -> Fence:
        """Return the lease of a piece of work."""
        return Fence(name, tenant_id, "", 0)

    def give_back(self, fence: Fence) -> None:
        """Keep it."""


OWN = OwnLeases()
_current: ContextVar[Fence | None] = ContextVar("mneme_fence", default=None)


@contextmanager
def under(fence: Fence) -> Iterator[None]:
    """Have what the block writes for the fence's tenant refused once the lease is lost."""
    token = _current.set(fence if fence.node else None)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Fence | None:
    """Return the lease that the work at hand has; None where it has none."""
    return _current.get()


def fence_of(tenant_id: str) -> Fence | None:
    """Return the lease that the work at hand names when it writes for a tenant; None for none."""
    fence = _current.get()
    return fence if fence is not None and fence.tenant_id == tenant_id else None
