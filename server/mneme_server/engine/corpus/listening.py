"""Hearing of what happens to tenants."""

from __future__ import annotations

from typing import Protocol


class TenantListener(Protocol):
    """Is told what happens to tenants. It must not wait, and holds none of them."""

    def committed(self, tenant_id: str) -> None:
        """A write transaction was committed; what it changed can be read."""
        ...

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """The tenant was closed, and is being deleted, or replaced by a backup."""
        ...
