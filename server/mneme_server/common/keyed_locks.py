"""Locks by key: one at a time does something for a tenant, or a session, and others meanwhile do it
for another."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from mneme_server.common import deadline

K = TypeVar("K", bound=Hashable)


class KeyedLocks(Generic[K]):
    """A lock for each key that somebody holds or waits for. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()  # Guards what follows.
        self._locks: dict[K, threading.Lock] = {}
        self._users: dict[K, int] = {}

    def __len__(self) -> int:
        """How many keys are held or waited for."""
        return len(self._locks)

    @contextmanager
    def holding(self, key: K) -> Iterator[None]:
        """Hold the lock of a key for the block, and wait for it only while somebody waits for the
        call.

        Raises:
            Abandoned: nobody does any more.
        """
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
            self._users[key] = self._users.get(key, 0) + 1
        try:
            with deadline.holding(lock):
                yield
        finally:
            with self._guard:
                self._users[key] -= 1
                if not self._users[key]:  # Whoever comes later may as well have a new one.
                    del self._locks[key], self._users[key]
