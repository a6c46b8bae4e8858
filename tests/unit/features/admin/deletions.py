"""Deletions of tenants as their operation asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.common.identity import DEFAULT_TENANT
from mneme_server.features.admin.tenants import Tenants


def delete(tenants: Tenants, tenant_id: str, caller: str = DEFAULT_TENANT) -> Sequence[str]:
    """Delete a tenant that may be deleted; return the servers that are away."""
    return tenants.delete(caller, tenant_id, tenants.require_deletable(caller, tenant_id))
