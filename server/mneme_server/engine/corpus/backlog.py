"""The backlog: a tenant's documents that wait for their embedding, and how many may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mneme_server.common.errors import (
    FailedPrecondition,
    Reason,
    ResourceExhausted,
    Unavailable,
)
from mneme_server.engine.corpus.cache import ManagedIndex
from mneme_server.engine.corpus.live_index import LiveIndex

_TEXTS_PER_SECOND = 500
"""How fast they are embedded, to tell a refused caller when to come back; measured on two cores."""
_COUNTED_S = 1.0
"""How often it is counted in the store what others queue, while the index does not follow."""


class Backlog:
    """Counts what waits, and says what there is no room for.

    It is counted as it is written, without a query: what others write, too, is counted by what the
    index lacks.

    Args:
        size: how many wait.
        depth: counts them in the store.
        index: what has the documents, and their vectors.
        writing: the lock of the tenant's writers.
        limit: how many may wait.

    Attributes:
        miscounted: others queued documents, or took some off the queue.
    """

    def __init__(
        self,
        size: int,
        depth: Callable[[], int],
        index: LiveIndex[ManagedIndex],
        writing: threading.Lock,
        limit: int,
    ) -> None:
        self._depth = depth
        self._index = index
        self._writing = writing
        self._limit = limit
        self._size = size
        self._counted_s = float("-inf")
        self.miscounted = False

    @property
    def counted(self) -> int:
        """Documents that waited when they were last counted."""
        return self._size

    @property
    def size(self) -> int:
        """Documents that wait; where others write, too, as the index has it."""
        if self.miscounted and self._writing.acquire(blocking=False):
            try:
                index = self._index.current
                if not (index.partial or self._index.lag):  # No query: those have no vector yet.
                    self._size = max(0, index.document_count - index.vector_count)
                elif self._size or time.monotonic() - self._counted_s >= _COUNTED_S:
                    self.count_again()
            finally:
                self._writing.release()
        return self._size

    def change(self, by: int) -> None:
        """Note that documents were queued, or taken off. The caller holds the lock of writers."""
        self._size += by

    def count_again(self) -> None:
        """Count the queue in the store. The caller holds the lock of writers."""
        try:
            self._size = self._depth()
        except Unavailable:  # Then it is not known to be empty.
            self._size = max(1, self._size)
        else:
            self.miscounted = False
            self._counted_s = time.monotonic()

    @property
    def is_long(self) -> bool:
        """Whether it holds more than half of what it may."""
        return self.size * 2 > self._limit

    @property
    def seconds(self) -> float:
        """How long what was last counted takes, about; a second at least."""
        return _seconds(self._size)

    def require_room(self, documents: int) -> None:
        """Refuse when `documents` more would be more than may wait.

        Raises:
            ResourceExhausted: QUEUE_FULL, with the time until there is room.
            FailedPrecondition: QUEUE_FULL, they are more than may wait at all.
        """
        if documents > self._limit:
            raise FailedPrecondition(
                f"{documents} texts to embed are more than the queue can hold, {self._limit}"
                " (MNEME_EMBED_QUEUE_LIMIT); nothing was recorded, send fewer at a time",
                reason=Reason.QUEUE_FULL,
            )
        size = self.size
        excess = size + documents - self._limit
        if excess > 0:
            raise ResourceExhausted(
                f"{size} texts are waiting for embedding, the limit is {self._limit};"
                " nothing was recorded, try again later",
                reason=Reason.QUEUE_FULL,
                retry_after_s=_seconds(excess),
            )


def _seconds(documents: int) -> float:
    return max(1.0, documents / _TEXTS_PER_SECOND)
