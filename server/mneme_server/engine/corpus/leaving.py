"""The farewell to those who follow a tenant that leaves."""

from __future__ import annotations

from mneme_server.common.errors import NotFound, Reason, Unavailable


def farewell(tenant_id: str, *, replaced: bool) -> NotFound | Unavailable:
    """Return what those are told who follow a tenant that is removed, or replaced by a backup."""
    if replaced:
        return Unavailable(
            f"the tenant {tenant_id} is being restored",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=1.0,
        )
    return NotFound(f"there is no tenant {tenant_id}")
