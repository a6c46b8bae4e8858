"""A tenant's commits and its leaving, for those who follow it."""

from __future__ import annotations

import threading

from mneme_server.common.errors import NotFound, Unavailable
from mneme_server.engine.corpus.leaving import farewell


class Followed:
    """A tenant that is followed. Thread-safe.

    Args:
        tenant_id: the tenant.
    """

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self._committed = threading.Condition()
        self._commits = 0
        self._leaving = self._replaced = False

    @property
    def commits(self) -> int:
        """How many write transactions were committed since the tenant was opened."""
        return self._commits

    @property
    def leaving(self) -> bool:
        """Whether the tenant is being removed: whoever follows it must let go of it."""
        return self._leaving

    def leave(self, *, replaced: bool = False) -> None:
        """Tell those who follow the tenant that it is being removed, or replaced by a backup."""
        with self._committed:
            self._leaving, self._replaced = True, replaced
            self._committed.notify_all()

    def stay(self) -> None:
        """Tell that the tenant is not removed after all."""
        with self._committed:
            self._leaving = self._replaced = False

    @property
    def farewell(self) -> NotFound | Unavailable:
        """What those who follow a leaving tenant are told."""
        return farewell(self.tenant_id, replaced=self._replaced)

    def wait_for_commit(self, seen: int, timeout_s: float) -> int:
        """Wait until more than `seen` transactions are committed; return how many are.

        Returns at once when the tenant is leaving.
        """
        with self._committed:
            self._committed.wait_for(lambda: self._commits > seen or self._leaving, timeout_s)
            return self._commits

    def _note_commit(self) -> None:
        with self._committed:
            self._commits += 1
            self._committed.notify_all()
