"""Ports to what operations need from storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mneme_server.common.canonical import JsonObject
from mneme_server.common.fencing import Fence
from mneme_server.common.progress import Progress
from mneme_server.features.operations.model import (
    Operation,
    OperationFilter,
    OperationKey,
    OperationState,
)


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


class OperationStore(Protocol):
    """The operations. Each method is one transaction, durable when it returns."""

    def add(self, operation: Operation, most_unfinished: int) -> Operation:
        """Add an operation that waits, and return it, or the one that has its key already.

        Raises:
            ResourceExhausted: as many of this owner's have not ended.
        """
        ...

    def get(self, key: OperationKey) -> Operation | None:
        """Return an operation, or None."""
        ...

    def list(self, filter_: OperationFilter, before: int | None, limit: int) -> Sequence[Operation]:
        """Return up to `limit` operations with smaller numbers, the newest first."""
        ...

    def unfinished(self) -> Sequence[Operation]:
        """Return those that have not ended, the oldest first."""
        ...

    def begin(self, key: OperationKey, now_us: int) -> Operation:
        """Note that an operation runs, once more."""
        ...

    def keep(self, key: OperationKey, facts: dict[str, Any], *, committed: bool) -> bool:
        """Add facts to what is kept, and note that it cannot be cancelled any more if `committed`;
        False, and nothing is changed, if it is to be cancelled."""
        ...

    def request_cancel(self, key: OperationKey) -> Operation | None:
        """Note that it is to be cancelled if it still can be; return it, or None."""
        ...

    def finish(
        self,
        key: OperationKey,
        state: OperationState,
        *,
        now_us: int,
        expires_us: int,
        progress: Progress | None = None,
        result: JsonObject | None = None,
        error: JsonObject | None = None,
    ) -> None:
        """Note how it ended, unless it was removed meanwhile."""
        ...

    def remove_ended_of(self, owner: str) -> None:
        """Remove the operations of an owner that have ended."""
        ...

    def remove_of(self, owner: str) -> None:
        """Remove all operations of an owner."""
        ...

    def remove_expired(self, now_us: int) -> None:
        """Remove those that ended long enough ago."""
        ...
