"""Ports to what operations need from storage."""

from __future__ import annotations

from typing import Protocol

from mneme_server.common.fencing import Fence


class OperationLeases(Protocol):
    """Says which operations are this server's to do, where others have the same operations."""

    def take(self, name: str, tenant_id: str) -> Fence | None:
        """Take the lease of a piece of a tenant's work, unless another server holds it that lives.

        Raises:
            Unavailable: it cannot be told now.
        """
        ...

    def give_back(self, fence: Fence) -> None:
        """Let another server take the lease."""
        ...
