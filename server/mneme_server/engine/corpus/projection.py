"""The copy of what recall shows, on this server's own disk, where the store is shared.

The copy follows the feed as the index does. It answers where it is no older than the index that
found what is to be shown, and holds all of that; else the store does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol

from mneme_server.engine.corpus.cache import Cache, CorpusChange, Steps
from mneme_server.engine.corpus.document import MemoryKind, MemoryView
from mneme_server.engine.corpus.feed import FeedRow, LostPlace, Position
from mneme_server.engine.corpus.live_index import LiveIndex, always
from mneme_server.engine.corpus.ports import MemoryReader
from mneme_server.engine.corpus.tenant_store import TenantStore, U_co


class Projection(Cache, Protocol):
    """Memories as they are shown, on this server's disk. Thread-safe."""

    def get_many(
        self, doc_ids: Sequence[int], *, bare: bool = False
    ) -> Mapping[int, MemoryView] | None:
        """Return what `MemoryReader.get_many` does; None where it does not hold all of them."""
        ...

    def of_sources(
        self, kind: MemoryKind, source_ids: Sequence[str]
    ) -> Mapping[str, MemoryView] | None:
        """Return what `MemoryReader.of_sources` does; None where it does not hold all of them."""
        ...

    def takes(self, change: CorpusChange) -> bool:
        """Tell whether a change says all that is to be known of it; else the store is read."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that it holds. It takes some microseconds."""
        ...

    def interrupt(self) -> None:
        """Build no other any more: the tenant is being closed."""
        ...


class ShownMemories(Generic[U_co]):
    """Where memories are read as recall shows them. Thread-safe.

    Args:
        tenant_id: the tenant.
        store: what keeps it.
        projection: the copy; None where there is none.
        head: the newest row of the feed.
        by_turns: see `LiveIndex`.
        after: see `LiveIndex`.
        closely: see `LiveIndex`.
    """

    def __init__(
        self,
        tenant_id: str,
        store: TenantStore[U_co],
        projection: Projection | None,
        head: Position,
        by_turns: Callable[[Steps], None],
        *,
        after: threading.Event | None = None,
        closely: Callable[[], bool] = always,
    ) -> None:
        self._store = store
        self._closely = closely
        self._live: LiveIndex[Projection] | None = None
        if projection is None:
            return
        place = projection.position
        if place.number >= head.number and place != head:
            projection.missed(LostPlace(f"row {place.number} of the feed is gone, or another"))
        self._live = LiveIndex(
            tenant_id,
            projection,
            self._changes_after,
            by_turns,
            lazily=True,
            what="projection",
            after=after,
            closely=closely,
        )
        self._live.know_of(head.number)

    @property
    def projection(self) -> Projection | None:
        """The copy, as it is now; None where there is none."""
        return None if self._live is None else self._live.current

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that the copy holds."""
        return 0 if self._live is None else self._live.current.memory_bytes

    @contextmanager
    def reading(self, number: int | None) -> Iterator[MemoryReader]:
        """Lend what reads memories as they are after a row of the feed, or later; None: as the
        store has them now."""
        near = None if number is None else self._near(number)
        if near is not None:
            yield _Nearest(near, self._store)
            return
        with self._store.read() as unit:
            yield unit.memories

    def apply(self, change: CorpusChange) -> None:
        """Follow a change that was just committed, in the order of the commits."""
        if self._live is None or change.position is None:
            return
        number = change.position.number
        current = self._live.current
        is_next = current.position.number == number - 1
        if is_next and self._closely() and current.takes(change):
            self._live.apply(change)
        else:
            self._live.know_of(number)

    def learn_of(self, number: int) -> None:
        """Have the copy follow, soon, up to a row that the store has."""
        if self._live is not None:
            self._live.learn_of(number)

    def know_of(self, number: int) -> None:
        """Take note of a row that the store has, and follow where that is due."""
        if self._live is not None:
            self._live.know_of(number)

    def clean(self) -> None:
        """Make the copy anew, and keep nothing of what was deleted.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if self._live is not None:
            self._live.clean()

    def close(self) -> None:
        """Stop following, and let go of the copy."""
        if self._live is not None:
            self._live.current.interrupt()
            self._live.close()

    def _near(self, number: int) -> Projection | None:
        current = self.projection
        if current is None or current.partial or current.position.number < number:
            return None
        return current

    def _changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        with self._store.read() as unit:
            return unit.feed.changes_after(place, limit)


class _Nearest(Generic[U_co]):
    """Implements `MemoryReader`: reads the copy, and the store where that does not hold it all."""

    def __init__(self, projection: Projection, store: TenantStore[U_co]) -> None:
        self._projection = projection
        self._store = store
        self.lost = 0

    def get_many(self, doc_ids: Sequence[int], *, bare: bool = False) -> Mapping[int, MemoryView]:
        found = self._projection.get_many(doc_ids, bare=bare)
        if found is not None:
            return found
        with self._store.read() as unit:
            found = unit.memories.get_many(doc_ids, bare=bare)
            self.lost += unit.memories.lost
        return found

    def of_sources(self, kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
        found = self._projection.of_sources(kind, source_ids)
        if found is not None:
            return found
        with self._store.read() as unit:
            found = unit.memories.of_sources(kind, source_ids)
            self.lost += unit.memories.lost
        return found
