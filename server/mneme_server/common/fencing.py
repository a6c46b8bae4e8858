"""Leave to write what background work came to, where several servers might do the same work.

Who does a tenant's background work holds a lease of it. Every transaction that the work writes
names the lease, and the store refuses it once another server has taken the work over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from mneme_server.common.errors import Reason, Unavailable

_RETRY_S = 1.0


class Fence(NamedTuple):
    """A lease: of which work, of which tenant's, which server does it, and a number that no other
    lease of it has. The work that is called as its tenant is all that recurs."""

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


_current: ContextVar[Fence | None] = ContextVar("mneme_fence", default=None)


@contextmanager
def under(fence: Fence) -> Iterator[None]:
    """Have what the block writes for the fence's tenant refused once the lease is lost."""
    token = _current.set(fence)
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
