"""Tenants' files, with nothing left in them of what was deleted."""

from __future__ import annotations

from mneme_server.engine.store.unit import Unit
from mneme_server.engine.tenants.registry import TenantRegistry

LONGEST_CALL_S = 30.0
"""How long calls may go on that began before something was hidden: as long as most may last."""


class Scrubber:
    """Implements `features.admin.forgetting.erasure.Files`.

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
