"""One tenant's memory: its store and its index, kept in step.

Writers change the store in a transaction; when it is committed, the same change is applied to
the index, in the order of the commits. What it misses, by a crash between the two, too, it is told
again from the feed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import Any, Generic, Protocol

import structlog

from mneme_server.common import consistency, deadline
from mneme_server.common.consistency import ConsistencyToken
from mneme_server.common.errors import NotFound, Reason, Unavailable
from mneme_server.engine.corpus.backlog import Backlog
from mneme_server.engine.corpus.cache import ManagedIndex, Steps, do_at_once
from mneme_server.engine.corpus.cold_search import ColdIndex
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.corpus.feed import FeedRow, Position
from mneme_server.engine.corpus.freshness import Freshness, Searches
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.engine.corpus.ports import (
    CorpusIndex,
    CorpusSearch,
    MemoryReader,
    Question,
    Selection,
    selected_row,
)
from mneme_server.engine.corpus.projection import Projection, ShownMemories
from mneme_server.engine.corpus.tenant_store import TenantStore, U_co

_SOON_S = 0.3
"""Who follows feeds closely tells sooner than this; waiting for that is less work than asking."""
LONGEST_WAIT_S = 60.0
"""How long a caller without a deadline waits for embeddings."""
_BASE_BYTES = 700_000
"""Of an open tenant in which nothing is stored, its connections' caches aside: the schemas of its
connections, tantivy's index, and objects. 720,000 were measured, of a hundred tenants."""
_MARKS = 4_096
"""Rows of a feed whose marks are known without a look at the store."""

_log = structlog.get_logger(__name__)


class TenantListener(Protocol):
    """Is told what happens to tenants. It must not wait, and holds none of them."""

    def committed(self, tenant_id: str) -> None:
        """A write transaction was committed; what it changed can be read."""
        ...

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """The tenant was closed, and is being deleted, or replaced by a backup."""
        ...


class FollowedTenant:
    """A tenant with its commits and its leaving, for those who follow it. Thread-safe.

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


def farewell(tenant_id: str, *, replaced: bool) -> NotFound | Unavailable:
    """Return what those are told who follow a tenant that is removed, or replaced by a backup."""
    if replaced:
        return Unavailable(
            f"the tenant {tenant_id} is being restored",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=1.0,
        )
    return NotFound(f"there is no tenant {tenant_id}")


class OpenTenant(FollowedTenant, Generic[U_co]):
    """An open tenant. Raises Unavailable where the store cannot be read now.

    Args:
        tenant_id: the tenant.
        store: what keeps it.
        index: its index, caught up with the store.
        queue_limit: how many documents may wait for embedding.
        wake: called with the tenant when documents were queued.
        by_turns: see `LiveIndex`.
        committed: see `TenantListener`.
        before_closing: called with this before it is closed; may still write.
        followed: others write to the tenant, too, and `told` is called with what they wrote.
        projection: what is shown, on this server's disk; None: it is read from the store.

    Attributes:
        generation: what names the store.
        backlog: what waits for its embedding.
        shown: where `reading_shown` reads.
    """

    def __init__(
        self,
        tenant_id: str,
        store: TenantStore[U_co],
        index: ManagedIndex,
        *,
        queue_limit: int,
        wake: Callable[[str], None],
        by_turns: Callable[[Steps], None] = do_at_once,
        committed: Callable[[str], None] = lambda _tenant: None,
        before_closing: Callable[[OpenTenant[U_co]], None] = lambda _tenant: None,
        followed: bool = False,
        projection: Projection | None = None,
    ) -> None:
        super().__init__(tenant_id)
        self._store = store
        opened_s = time.monotonic()
        self._wake = wake
        self._tell_committed = committed
        self._before_closing = before_closing
        self._write_lock = threading.Lock()
        with store.read() as unit:
            depth = unit.queue.depth()
            self.generation = unit.feed.generation() or 0
            head = unit.feed.head()
        self._followed = followed
        self._searches = Searches()
        self._waiters = 0
        self._told_s = self._told_before_s = float("-inf")
        self._index = LiveIndex(
            tenant_id, index, self._changes_after, by_turns, closely=self._is_due_closely
        )
        self.backlog = Backlog(depth, self._queue_depth, self._index, self._write_lock, queue_limit)
        self._rows = FeedMarks(head)
        built = None if index.cold_index is None else index.cold_index.done
        self.shown = ShownMemories(
            tenant_id, store, projection, head, by_turns, after=built, closely=self._is_due_closely
        )
        self._freshness = Freshness(self._index.holds, opened_s) if followed else None
        self._seen_elsewhere = head.number

    @property
    def index(self) -> CorpusIndex:
        """The index in use, for one call: another may take its place, with other rows. Raises
        Unavailable where others write to the tenant, too, and it cannot be told what."""
        if self._freshness is not None:
            self._searches.note()
            self._freshness.require(self._come_up(self._freshness))
        return self._index.current

    def look_again(self) -> None:
        """Have the index hold what others wrote, too, as far as that can be told now: for who
        counts what is there."""
        if self._freshness is not None:
            self._come_up(self._freshness)

    def _come_up(self, freshness: Freshness) -> float:
        """Catch up with what there is, and return when that was asked for. Where it takes long, or
        cannot be told, the rest follows."""
        now = time.monotonic()
        if not (freshness.was_told(now) or self._is_told_closely(now)):
            self._ask(now)
        self._index.come_to(freshness.newest)
        return now

    @property
    def is_followed_closely(self) -> bool:
        """Whether what others write is caught up with before anybody asks: it is searched often, or
        somebody waits for what they do."""
        return self._searches.are_frequent or self._waiters > 0

    def _is_told_closely(self, now_s: float) -> bool:
        """Tell whether somebody follows the feed closely, so that news is on its way."""
        apart_s = self._told_s - self._told_before_s
        return self._searches.are_frequent and max(apart_s, now_s - self._told_s) < _SOON_S

    def _is_due_closely(self) -> bool:
        return not self._followed or self.is_followed_closely

    @property
    def cold_index(self) -> ColdIndex | None:
        """What answers while the index is not built yet; None once it is."""
        return self._index.current.cold_index

    def wait_until_built(self) -> None:
        """Return once there is an index.

        Raises:
            Unavailable: it took more than `LONGEST_WAIT_S`; it goes on being built.
            Abandoned: nobody waits for the call any more.
        """
        current = self._index.current
        if current.cold_index is None or self._index.wait_for_another(current, LONGEST_WAIT_S):
            return
        raise Unavailable(
            "the index of this tenant is being built on this server",
            reason=Reason.INITIALIZATION_FAILED,
            retry_after_s=1.0,
        )

    @contextmanager
    def searching(self, question: Question) -> Iterator[CorpusSearch]:
        """Lend what a question is searched in for the block: the index or, while it is not built
        yet, one of what the store has that bears on the question.

        Raises:
            Unavailable: there is no index, and the store cannot be reached.
            Abandoned: nobody waits for the call any more.
        """
        cold_index = self.cold_index
        if cold_index is not None:
            reading = partial(self.reading_shown, newest=True)
            with cold_index.search_store(question, self.pending, reading) as found:
                if found is not None:
                    yield found
                    return
            self.wait_until_built()
        yield IndexSearch(self)

    @property
    def recallable_count(self) -> int:
        """Documents that can be recalled, those that are archived included."""
        return self._index.current.columns.size

    @property
    def pending(self) -> int:
        """Documents that wait for their embedding; where others write, too, as the index has it."""
        return self.backlog.size

    def told(self, newest: Position, asked_s: float) -> bool:
        """Take note of the feed's newest row, as it was asked for at a time of the monotonic clock.

        Returns whether others wrote something since the last time.
        """
        number = newest.number
        self._told_before_s, self._told_s = self._told_s, asked_s
        self._learn(newest, asked_s)
        if number <= max(self._rows.head.number, self._seen_elsewhere):
            return False
        self._seen_elsewhere = number
        self.backlog.miscounted = True
        self._note_commit()
        return True

    def _ask(self, now: float) -> None:
        """Ask for the feed's newest row for this call. Others' writes are still told of: this is
        not for who follows them."""
        try:
            with self._store.read() as unit:
                if unit.feed.generation() == self.generation:
                    self._learn(unit.feed.head(), now)
        except Unavailable:  # Then it waits for who follows the feeds, as all do.
            return

    def _learn(self, newest: Position, asked_s: float) -> None:
        self._index.know_of(newest.number)
        self.shown.know_of(newest.number)
        self._rows.learn(newest)
        if self._freshness is not None:
            self._freshness.told(newest.number, asked_s)

    @property
    def index_mode(self) -> str:
        """How vectors are searched: "exact" or "hnsw"."""
        return self._index.current.mode

    @property
    def index_lag(self) -> int:
        """Rows of the feed that its index does not hold yet, as far as is known."""
        return self._index.lag

    @property
    def index_age_s(self) -> float:
        """How long ago its index held all there was, in seconds; 0 where nobody else writes."""
        return 0.0 if self._freshness is None else self._freshness.age_s

    @property
    def document_count(self) -> int:
        """Documents that can be found."""
        return self._index.current.document_count

    @property
    def vector_count(self) -> int:
        """Vectors that are searched."""
        return self._index.current.vector_count

    @property
    def index_bytes(self) -> int:
        """Bytes of memory that its index takes."""
        return self._index.current.memory_bytes

    @property
    def vector_bytes(self) -> int:
        """Those that its vectors take, with the graphs that lead through them."""
        return self._index.current.vector_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that it takes to keep the tenant open. It takes some microseconds."""
        caches = self._index.current.memory_bytes + self.shown.memory_bytes
        return _BASE_BYTES + self._store.memory_bytes + caches

    def read(self) -> AbstractContextManager[U_co]:
        """Open a read transaction: one consistent snapshot."""
        return self._store.read()

    def reading_shown(self, *, newest: bool = False) -> AbstractContextManager[MemoryReader]:
        """Lend what reads memories as they are shown: as fresh as the index, or more; `newest`, as
        the store has them now."""
        return self.shown.reading(None if newest else self._index.current.position.number)

    @contextmanager
    def write(self) -> Iterator[U_co]:
        """Open a write transaction; durable and indexed when the block ends."""
        with deadline.holding(self._write_lock):
            with self._store.write() as unit:
                yield unit
                writing_s = time.monotonic()  # Nobody else writes to it until this is committed.
            changes = unit.documents.changes
            self.backlog.change(max(0, changes.queued))
            self.shown.apply(changes)  # First: it must not be behind the index.
            self._index.apply(changes)
            self.backlog.change(min(0, changes.queued))  # What has its vector is found by it now.
            if changes.position is not None:
                self._rows.note(changes.position)
                if self._freshness is not None:
                    self._freshness.told(changes.position.number, writing_s)
            if changes.position is not None or self._freshness is None:  # Else see `newest`.
                consistency.wrote(ConsistencyToken(self.generation, *self._rows.head))
        self._note_commit()
        self._tell_committed(self.tenant_id)
        if self.backlog.counted:
            self._wake(self.tenant_id)

    def newest(self) -> ConsistencyToken:
        """Return a token of what the store holds now, whoever wrote it."""
        with self._store.read() as unit:
            return ConsistencyToken(self.generation, *unit.feed.head())

    def wait_until_as_fresh(self, token: ConsistencyToken) -> bool:
        """Wait until answers show what there was when the token was given, or more.

        Returns False, at once, when the store does not hold what it held then: it was put back,
        has lost commits, or is another. Of an index that failed nothing is waited for: its answers
        are marked as partial.

        Raises:
            Abandoned: the caller waits no longer.
            Unavailable: it took more than `LONGEST_WAIT_S`.
        """
        place = Position(token.number, token.mark)
        if token.generation != self.generation or not self._holds(place):
            return False
        if not self._index.wait_for(place.number, LONGEST_WAIT_S):
            raise Unavailable(
                "the indexes are not as fresh yet as was asked for",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=1.0,
            )
        return True

    def _holds(self, place: Position) -> bool:
        known = self._rows.mark_of(place.number)
        if known is not None:
            return known == place.mark
        with self._store.read() as unit:
            held = unit.feed.holds(place)
        if held:  # The same token may come with many calls.
            self._rows.learn(place)
        return held

    def _queue_depth(self) -> int:
        with self._store.read() as unit:
            return unit.queue.depth()

    def _changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        with self._store.read() as unit:
            return unit.feed.changes_after(place, limit)

    def compact(self, worth_rewriting: float) -> bool:
        """See `TenantStore`.

        Raises:
            Unavailable: reads went on for too long; it can be tried again.
            ResourceExhausted: the disk is full.
        """
        return self._store.compact(worth_rewriting)

    def rewrite(self) -> None:
        """Write the store anew, without any of the room that deleted rows left. Writes wait.

        Raises:
            As `compact`.
        """
        with deadline.holding(self._write_lock):
            self._store.scrub()

    def require_room(self, documents: int) -> None:
        """See `Backlog`."""
        self.backlog.require_room(documents)

    def wait_embedded(self, doc_ids: Sequence[int]) -> None:
        """Wait until none of these documents waits for its embedding.

        Whoever waits holds a thread: for a caller without a deadline that is `LONGEST_WAIT_S`.

        Raises:
            Unavailable: the time was up. The documents are safe and will be embedded.
            NotFound: the tenant is being removed.
        """
        with self._committed:
            self._waiters += 1
        try:
            self._wait_embedded(doc_ids)
        finally:
            with self._committed:
                self._waiters -= 1

    def _wait_embedded(self, doc_ids: Sequence[int]) -> None:
        latest = time.monotonic() + LONGEST_WAIT_S
        while True:
            if self._leaving:
                raise self.farewell
            seen = self._commits
            with self.read() as unit:
                waiting = unit.queue.waiting_of(doc_ids)
            if not waiting:
                return
            given = deadline.time_left()
            left = latest - time.monotonic() if given is None else given
            if left <= 0:
                raise Unavailable(
                    f"{waiting} texts are recorded but not embedded yet",
                    reason=Reason.EMBEDDING_FAILED,
                    retry_after_s=self.backlog.seconds,
                )
            self.wait_for_commit(seen, min(1.0, left))

    def scrub(self) -> None:
        """Leave nothing of what was deleted or removed in the store, or in the index. Takes long;
        writes wait for a part of it.

        Raises:
            Unavailable: reads went on for too long; it can be tried again.
            ResourceExhausted: the disk is full.
        """
        with self._write_lock:
            self._store.scrub()
        self._index.clean()
        self.shown.clean()

    def clean(self, number: int) -> None:
        """Leave nothing in the index and in what is shown, in memory or on the disk, of what was
        removed from the store up to a row of the feed.

        Raises:
            Unavailable: it took more than `LONGEST_WAIT_S` to come to that row.
            OSError: the disk is full or cannot be written.
        """
        if not self._index.wait_for(number, LONGEST_WAIT_S):
            raise Unavailable(
                "the index has not come to what was erased yet",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=1.0,
            )
        self._index.clean()
        self.shown.clean()

    def close(self) -> None:
        """Close the index and the store. Nobody may use the tenant any more."""
        self._before_closing(self)
        with self._write_lock:
            if self.backlog.miscounted:
                self.backlog.count_again()
            cold_index = self.cold_index
            if cold_index is not None:
                cold_index.interrupt()
            self._index.close()
            self.shown.close()
            self._store.close()


class IndexSearch:
    """A search of a tenant's index. Implements `CorpusSearch`.

    Args:
        tenant: the tenant.
    """

    whole = True

    def __init__(self, tenant: OpenTenant[Any]) -> None:
        self._tenant = tenant
        self.reading_shown = tenant.reading_shown

    @cached_property
    def index(self) -> CorpusIndex:
        """See `CorpusSearch`: the one that is in use when it is asked for first."""
        return self._tenant.index

    @property
    def pending(self) -> int:
        """See `CorpusSearch`."""
        return self._tenant.pending

    def count_of(self, selection: Selection) -> int:
        """See `CorpusSearch`."""
        return selection.count

    def has(self, kinds: Collection[MemoryKind]) -> bool:
        """See `CorpusSearch`."""
        return self.index.select(DocumentFilter(kinds=frozenset(kinds))).count > 0

    def row_of(self, document: Document, filter_: DocumentFilter, selection: Selection) -> int:
        """See `CorpusSearch`."""
        return selected_row(self.index, document, selection)

    def hold_around(self, doc_ids: Sequence[int], reach: int) -> None:
        """See `CorpusSearch`: it holds them."""


class OpenTenants(Protocol[U_co]):
    """Where use cases get a tenant from."""

    def open(self, tenant_id: str) -> AbstractContextManager[OpenTenant[U_co]]:
        """Lend the tenant for the block, opening it if need be.

        Raises:
            NotFound: there is no such tenant.
            FailedPrecondition: its vectors are of another model, or its database is newer.
        """
        ...


class TenantsAtOnce(OpenTenants[U_co], Protocol[U_co]):
    """Which also lend one that has no index yet."""

    def open_at_once(self, tenant_id: str) -> AbstractContextManager[OpenTenant[U_co]]:
        """As `open`, also while the index is being built; see `OpenTenant.searching`."""
        ...


class FeedMarks:
    """The marks of rows of a tenant's feed that are known without a look at the store, by the rows'
    numbers: those that were learnt last.

    Args:
        head: the newest that was written here; one thread at a time notes the next.
    """

    def __init__(self, head: Position) -> None:
        self.head = head
        self._marks = OrderedDict([head])

    def note(self, position: Position) -> None:
        """Add the next row."""
        self.head = position
        self.learn(position)

    def learn(self, position: Position) -> None:
        """Add a row that the store was found to hold. For any thread."""
        self._marks[position.number] = position.mark
        if len(self._marks) > _MARKS:
            self._marks.popitem(last=False)

    def mark_of(self, number: int) -> int | None:
        """Return the mark of a row; None where it is not known."""
        return self._marks.get(number)
