"""Seats: so many calls may wait for a slow embedder."""

from __future__ import annotations

from collections import Counter


class Seats:
    """Counts the calls that wait for longer than they should, by their tenants.

    That others' calls wait is no reason to refuse one, unless so many tenants' do that it can only
    be the embedder: `most` calls may wait in all, and as many again that are the first of their
    tenants. The caller's lock guards it.

    Args:
        most: None for no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def taken_by(self, tenant_id: str) -> int:
        """Return how many calls of the tenant wait for long."""
        return self._taken[tenant_id]

    def free_for(self, tenant_id: str) -> bool:
        """Whether one more call of the tenant may wait for long."""
        if self._most is None:
            return True
        return self._taken.total() < self._most * (1 if self.taken_by(tenant_id) else 2)

    def take(self, tenant_id: str) -> bool:
        """Take a seat for a call of the tenant; False without one that is free."""
        free = self.free_for(tenant_id)
        if free:
            self._taken[tenant_id] += 1
        return free

    def leave(self, tenant_id: str) -> None:
        """Give the seat of a call of the tenant back."""
        self._taken -= Counter([tenant_id])  # Forgets who has none left.
