"""A tenant's index as a follower of the feed, while it is in use.

What is committed is passed on at once. Whatever the index missed, here or of what another process
wrote, is caught up from the feed: soon while it is followed closely, else when somebody asks, all
at once; an index that fails is built again beside the old one and takes its place. Calls, writes
and watches go on meanwhile; what a failed index still finds is answered, marked as partial.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import structlog

from mneme_server.common import deadline
from mneme_server.common.clock import doubled
from mneme_server.common.errors import Unavailable, is_failure
from mneme_server.engine.corpus.cache import AT_ONCE, Cache, CorpusChange, Steps, do_at_once
from mneme_server.engine.corpus.feed import FeedRow, Position

_log = structlog.get_logger(__name__)

_FEW = 8
"""Rows that are caught up while writers wait; more are caught up before."""
_ROWS = 64
"""Rows that are caught up in one go, while writers wait. What several of them name is read once."""
_IN_A_CALL_S = 0.25
"""How long a call that asks catches up itself; then it waits for a thread that goes on."""
_DOCUMENTS = 1_000
"""Documents that rows caught up in one go come to at most, but for those of one row."""
_MOST_BEHIND = 1_000
"""Rows that an index may lack that nobody asks: the first who does waits for no more. So many take
a fraction of what they would have taken one by one."""
_STEADY = 20.0
"""An index that works for less than so many times as long as it took to build waits for the next
one, ever longer: else whatever it fails at would keep the server building."""
_LEAST_S = 0.1
"""How long building counts as at least, and the pause until the store is read again that could not
be."""
_LONGEST_DELAY_S = 60.0


C = TypeVar("C", bound=Cache)


def always() -> bool:
    """Follow a feed closely, whoever asks."""
    return True


class LiveIndex(Generic[C]):
    """Holds the index that is in use, and keeps it up with the feed. Thread-safe.

    Args:
        tenant_id: the tenant, for the log.
        index: its index.
        changes_after: reads the tenant's feed, as `Feed.changes_after`.
        by_turns: does the steps of a large change, all of them, and lets others go on in between.
        lazily: what was missed is made up for by a thread of its own, always: nobody waits for it.
        what: what it is called in the log.
        after: nothing that takes long is done in the background before this is set.
        closely: tells whether it catches up with whatever it is told of, or waits until somebody
            asks.

    Raises:
        Unavailable: the store cannot be read now.
    """

    def __init__(
        self,
        tenant_id: str,
        index: C,
        changes_after: Callable[[Position, int], Sequence[FeedRow]],
        by_turns: Callable[[Steps], None] = do_at_once,
        *,
        lazily: bool = False,
        what: str = "index",
        after: threading.Event | None = None,
        closely: Callable[[], bool] = always,
    ) -> None:
        self._tenant_id = tenant_id
        self._changes_after = changes_after
        self._by_turns = by_turns
        self._lazily = lazily
        self._what = what
        self._after = after
        self._closely = closely
        self._order = threading.Lock()  # Changes and the swap, one after the other.
        self._replacing = threading.Lock()  # One index takes another's place at a time.
        self._starting = threading.Lock()  # Guards the next two; never held for long.
        self._thread: threading.Thread | None = None
        self._head = index.position.number  # The newest row that anybody told of.
        self._moved = threading.Condition()
        self._closing = threading.Event()
        # Only the thread that repairs has these.
        self._failures = 0
        self._steady_from_s = float("-inf")
        self._took_s = _LEAST_S
        self._current = index
        self._use(index)
        if not lazily:
            with self._order:  # What was committed while it was opened.
                self._catch_up()
        self._mend()  # What failed before anybody could be told.

    @property
    def current(self) -> C:
        """The index in use. A call keeps to one: rows of another one are others."""
        return self._current

    @property
    def lag(self) -> int:
        """Rows of the feed that somebody told of and that the index does not hold yet."""
        return max(0, self._head - self._current.position.number)

    def apply(self, change: CorpusChange) -> None:
        """Change the index as the store was changed; called in the order of the commits.

        The change is committed, so nothing fails here: what an index misses it is told again, from
        the feed, and one that fails then, too, is built again.
        """
        if change.position is None:
            return
        with self._order:
            self._know(change.position.number)
            if not self._pass_on(change, change.position) and self._is_due():
                self._mend() if self._lazily else self._catch_up_soon()
        self._tell()

    def wait_for(self, number: int, timeout_s: float) -> bool:
        """Wait until the index holds what there is up to a row that the store has.

        Returns whether it does, or failed: then it answers at once, marked as partial.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        if not self.learn_of(number):
            with self._moved:
                deadline.wait_for(
                    self._moved, lambda: self.holds(number) or self._closing.is_set(), timeout_s
                )
        return self.holds(number)

    def know_of(self, number: int) -> None:
        """Take note of a row that the store has; catch up soon, if it is followed closely."""
        self._know(number)
        if not self.holds(number) and self._is_due():
            self._mend()

    def come_to(self, number: int) -> None:
        """Have the index hold what there is up to a row that the store has: here and now, or what
        takes long soon.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        if self.holds(number):
            return
        self._know(number)
        until = time.monotonic() + _IN_A_CALL_S
        while time.monotonic() < until:
            with deadline.holding(self._order):
                before = self._current.position
                if self.holds(number) or not self._step_up() or self._current.position == before:
                    break
            self._tell()
        self._mend()

    def learn_of(self, number: int) -> bool:
        """Have the index catch up to a row that the store has, soon; tell whether it has."""
        if self.holds(number):
            return True
        self._know(number)
        self._mend()
        return False

    def holds(self, number: int) -> bool:
        """Tell whether the index holds what there is up to a row, or failed: then its answers are
        marked as partial."""
        index = self._current
        return index.position.number >= number or index.partial

    def clean(self) -> None:
        """Put another in the place of the index that keeps nothing of what was removed, in memory
        or on the disk. Calls and writes go on meanwhile.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        with self._replacing:
            self._replace(self._current, lambda index: index.rebuilt(clean=True))
            self._current.write()

    def wait_for_another(self, than: C, timeout_s: float) -> bool:
        """Wait until another index has taken the place of this one; tell whether it has.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        with self._moved:
            deadline.wait_for(
                self._moved,
                lambda: self._current is not than or self._closing.is_set(),
                timeout_s,
            )
        return self._current is not than

    def close(self) -> None:
        """Stop building, write what must be kept and free the rest."""
        with self._starting:
            self._closing.set()
            thread = self._thread
        if self._after is not None:
            self._after.set()
        self._tell()
        if thread is not None:
            thread.join()
        self._current.close()

    def _know(self, number: int) -> None:
        with self._starting:
            self._head = max(self._head, number)

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def _use(self, index: C) -> None:
        self._current = index
        index.on_failure(self._failed)

    def _failed(self) -> None:
        self._tell()
        self._mend()

    def _pass_on(self, change: CorpusChange, position: Position) -> bool:
        """Apply what was just committed; return whether the index holds it now."""
        index = self._current
        if position.number <= index.position.number:
            return True  # It was built since, from what the store held.
        failed = index.partial
        if not failed and (change.everything or position.number != index.position.number + 1):
            return False
        try:
            large = max(len(change.saved), len(change.removed)) > AT_ONCE
            (self._by_turns if large else do_at_once)(index.applying(change))
        except BaseException as error:
            if not is_failure(error):
                self._mend()
                raise
            _log.warning(f"the {self._what} missed a change", tenant=self._tenant_id,
                         error=repr(error))  # fmt: skip
            return failed  # One that is being replaced is told nothing again.
        return True

    def _catch_up_soon(self) -> None:
        """Have the index make up for what it missed: many rows later, and all of them if the store
        cannot be read now, or who has committed does not wait any more."""
        try:
            self._catch_up(most=_FEW)
        except Unavailable:
            self._mend()

    def _catch_up(self, most: int | None = None) -> None:
        """Have the index make up for what it missed; what is more than `most` rows, later."""
        index = self._current
        try:
            while rows := self._changes_after(index.position, _ROWS):
                if most is not None and len(rows) > most:
                    self._mend()
                    return
                self._by_turns(index.catching_up(_together(rows)))
        except Unavailable:  # It is no fault of the index.
            raise
        except BaseException as error:
            if not is_failure(error):
                raise
            index.missed(error)

    def _mend(self) -> None:
        """Have a thread do what is left, unless one does."""
        with self._starting:
            if self._thread is None and not self._closing.is_set() and self._is_behind():
                self._thread = threading.Thread(
                    target=self._repair, name=f"{self._what}-repair", daemon=True
                )
                self._thread.start()

    def _is_due(self) -> bool:
        """Tell whether to catch up though nobody asks."""
        return self._closely() or self.lag > _MOST_BEHIND

    def _is_behind(self) -> bool:
        return self._current.partial or self._current.position.number < self._head

    def _repair(self) -> None:
        if self._after is not None:
            self._after.wait()
        while True:
            with self._starting:
                if self._closing.is_set() or not self._is_behind():
                    self._thread = None
                    return
            if self._current.partial:
                self._try_to_replace()
            else:
                with self._order:
                    came_on = self._step_up()
                if not came_on:
                    self._closing.wait(_LEAST_S)
            self._tell()

    def _step_up(self) -> bool:
        """Catch up by some rows. Returns False where the store cannot be read now, or has none.
        Holds the order."""
        index = self._current
        try:
            rows = self._changes_after(index.position, _ROWS)
            if rows:
                self._by_turns(index.catching_up(_together(rows)))
            else:  # There is no such row as somebody told of.
                with self._starting:
                    self._head = index.position.number
        except Unavailable:
            return False
        except BaseException as error:
            if not is_failure(error):
                raise
            index.missed(error)
        return True

    def _try_to_replace(self) -> None:
        soon = time.monotonic() < self._steady_from_s
        self._failures = self._failures + 1 if soon else 0
        if self._closing.wait(_delay_s(self._failures, self._took_s)):
            return
        start = time.monotonic()
        self._steady_from_s = float("inf")  # Unless it can be built.
        try:
            with self._replacing:
                if not self._current.partial:
                    return
                self._replace(self._current, lambda index: index.rebuilt())
        except deadline.Abandoned:
            return  # The tenant is being closed.
        except BaseException as error:
            if not is_failure(error):
                raise
            _log.exception(f"the {self._what} could not be built again", tenant=self._tenant_id)
            return
        end = time.monotonic()
        self._took_s = max(_LEAST_S, end - start)
        self._steady_from_s = end + _STEADY * self._took_s

    def _replace(self, index: C, build: Callable[[C], C]) -> None:
        """Build another index, bring it up to date and put it in the place of `index`."""
        start = time.monotonic()
        index.abandon()
        built = build(index)
        try:
            while len(rows := self._left_for(built)) > _FEW:
                do_at_once(built.catching_up(rows))
            with self._order:
                while rows := self._left_for(built):
                    do_at_once(built.catching_up(rows))
                self._use(built)
        except BaseException:
            built.abandon()
            built.discard()
            raise
        index.discard()
        _log.info(
            f"{self._what} built again", tenant=self._tenant_id, row=built.position.number,
            seconds=round(time.monotonic() - start, 3),
        )  # fmt: skip

    def _left_for(self, built: C) -> Sequence[FeedRow]:
        """Return what one that was built has to catch up with: nothing once the tenant is being
        closed, as one that was stopped half-way never comes to the end."""
        return () if self._closing.is_set() else self._changes_after(built.position, _ROWS)


def _together(rows: Sequence[FeedRow]) -> Sequence[FeedRow]:
    """Return the first of some rows, as many as are caught up with in one go."""
    documents = 0
    for number, row in enumerate(rows):
        documents += row.documents
        if number and documents > _DOCUMENTS:
            return rows[:number]
    return rows


def _delay_s(failures: int, took_s: float) -> float:
    return doubled(took_s, failures - 1, _LONGEST_DELAY_S) if failures else 0.0
