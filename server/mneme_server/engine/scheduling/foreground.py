"""Calls go before work in the background, small ones before large ones, and few compute at once.

All threads share one interpreter, and its lock lets one of them run Python at a time. Work in the
background that runs beside a call takes from it, whatever its threads' priorities; and of many
calls that compute at once each only takes the lock from the others, a hundred times a call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import TypeVar

from mneme_server.common import deadline, interpreter
from mneme_server.common.begun import Begun
from mneme_server.common.fairness import FairGate
from mneme_server.common.pages import PAGE_BYTES

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")

_TOO_FEW = 2
"""Items up to which a turn would cost more than working them off does."""
PART = 32
"""Items that a large call works off before it gives way; of events a few milliseconds' worth."""
_READ_PART = 100
"""Rows that a large page is read by: to begin anew costs as much as some rows do."""
_PATIENCE = 3.0
"""Small calls get three quarters of the time, when they could use all of it."""
_MOST_PATIENCE_S = 0.05

_QUIET_S = 0.02
"""Without a call for so long the foreground is quiet: a client that sends one call after the other
pauses for less."""
_GIVE_WAY_S = 0.25
"""The longest that work in the background waits for quiet before each step: calls without a pause
slow it down and do not stop it."""
_AT_WORK_S = 0.05
"""How long work in the background goes on before it gives way again."""


class Size(Enum):
    """How much a call asks for, told by its request before any work is done."""

    SMALL = "small"
    LARGE = "large"


def size_of(items: int) -> Size:
    """Return the size of a call that asks for work on so many items."""
    return Size.SMALL if items <= PART else Size.LARGE


class Foreground:
    """What the calls of one process are doing. Thread-safe.

    Calls are small or large. Few small ones compute at once, tenants by turns. Large ones compute
    one at a time, tenants by turns, in parts (`each`); before each part they give way to the small
    ones, so that these never wait for them: whoever holds the interpreter's lock for long slows
    all others, many times over.

    Args:
        at_once: small calls that may compute at once; some of what they do is done in libraries,
            without the interpreter's lock. With eight recalls in flight and no limit, a third fewer
            were answered a second, and each took half as much processor time again.
    """

    def __init__(self, at_once: int = 2) -> None:
        self._small = FairGate(at_once)
        self._large = FairGate(1)
        self._changing = threading.Condition()  # Guards what follows.
        self._active = 0
        self._small_calls = 0  # That compute, or wait for their turn.
        self._hurrying = 0
        self._last_s = float("-inf")  # When a call was last at work.
        # Only who has the large turn touches these.
        self._large_began_s = 0.0
        self._large_took_s = 0.0  # Since large calls last gave way to small ones.

    @contextmanager
    def active(self) -> Iterator[None]:
        """Say that a call is at work, so that work in the background gives way."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        with self._changing:
            self._active += 1

    def _end(self) -> None:
        with self._changing:
            self._active -= 1
            self._last_s = time.monotonic()

    def computing(
        self, size: Size = Size.SMALL, cost: float = 1.0, *, to_the_end: bool = False
    ) -> AbstractContextManager[None]:
        """Compute for a call, once it is its turn.

        Nothing inside may wait for others, but through `wait_outside`, nor take another turn.

        Args:
            size: SMALL for what takes a few milliseconds, LARGE for a part of what takes longer.
            cost: what the turn counts as beside those of other tenants, of the same size.
            to_the_end: do it also when nobody waits for the call any more.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        return _Computing(self, size, cost, to_the_end)

    def each(
        self,
        make: Callable[[T], R],
        items: Sequence[T],
        *,
        size: Size | None = None,
        part: int = PART,
        to_the_end: bool = False,
    ) -> list[R]:
        """Return what `make` makes of each item, computing: a large call part by part.

        Args:
            make: what is done with an item.
            items: what to work off.
            size: the call's; by default it is told by how many items there are.
            part: how many items are worked off before the call gives way.
            to_the_end: work all of them off also when nobody waits for the call any more.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        if size is None and len(items) <= _TOO_FEW:
            return list(map(make, items))
        size = size or size_of(len(items))
        made: list[R] = []
        with self.computing(size, cost=len(items) / part, to_the_end=to_the_end):
            for start in range(0, len(items), part):
                if start and size is Size.LARGE:
                    self._give_way_to_others()
                    if not to_the_end:
                        deadline.check()
                made += map(make, items[start : start + part])
        return made

    def read_page(
        self,
        read: Callable[[K | None, int], Sequence[T]],
        after: K | None,
        limit: int,
        key: Callable[[T], K],
        least_bytes: Callable[[T], int] = lambda _row: 0,
    ) -> list[T]:
        """Return a page of rows, computing: a large one is read part by part, each after the last.

        Args:
            read: returns rows after a key, so many at most.
            after: where the page begins; None for the first row.
            limit: rows at most. It tells the call's size.
            key: a row's.
            least_bytes: what a row takes in an answer, at least. Of rows that are more than an
                answer can carry, no more are read: the page ends among them.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        size = size_of(limit)
        rows: list[T] = []
        room = PAGE_BYTES
        with self.computing(size, cost=limit / PART):
            while True:
                wanted = min(limit - len(rows), _READ_PART if size is Size.LARGE else limit)
                part = read(after, wanted)
                rows += part
                room -= sum(map(least_bytes, part))
                if len(part) < wanted or len(rows) >= limit or room < 0:
                    return rows
                after = key(part[-1])
                self._give_way_to_others()
                deadline.check()

    def finish(self, steps: Sequence[Callable[[], object]]) -> None:
        """Do what must be done whether anybody waits for it or not, in steps of some milliseconds
        each; give way before each of them."""
        self.each(_do, steps, size=Size.LARGE, part=1, to_the_end=True)

    def wait_outside(self, wait: Callable[[], T] | Begun[T], size: Size = Size.SMALL) -> T:
        """Return what `wait` returns; inside `computing` a call of this size, let others compute
        meanwhile, unless there is nothing to wait for: who changes places needs two turns."""
        if isinstance(wait, Begun) and wait.is_ready():
            return wait()
        self._leave(size)
        try:
            return wait()
        finally:
            # `computing` ends by leaving, so the call comes back also when nobody waits for it.
            self._enter(size, cost=0.0, stay=True)

    def _enter(self, size: Size, cost: float, *, stay: bool = False) -> None:
        if size is Size.LARGE:
            self._large.enter(cost, stay=stay)
            self._let_small_go_first()
            self._large_began_s = time.monotonic()
            return
        with self._changing:
            self._small_calls += 1
        try:
            self._small.enter(cost, stay=stay)
        except BaseException:
            self._small_call_left()
            raise

    def _leave(self, size: Size) -> None:
        if size is Size.LARGE:
            self._large_took_s += time.monotonic() - self._large_began_s
            self._large.leave()
        else:
            self._small.leave()
            self._small_call_left()

    def _give_way_to_others(self) -> None:
        """Between two parts of a large call: let other tenants' large calls and all small ones have
        their turn. Those of the same tenant can wait: to change places costs time, too."""
        self._large_took_s += time.monotonic() - self._large_began_s
        if self._large.is_waited_for_by_others():
            self._large.leave()
            self._large.enter(stay=True)
        self._let_small_go_first()
        self._large_began_s = time.monotonic()

    def _small_call_left(self) -> None:
        with self._changing:
            self._small_calls -= 1
            if not self._small_calls:
                self._changing.notify_all()

    def _let_small_go_first(self) -> None:
        """Wait while small calls compute, but only in proportion to what large ones have taken:
        small calls without a pause slow them down and do not stop them."""
        if self._small_calls:
            longest_s = min(_MOST_PATIENCE_S, _PATIENCE * self._large_took_s)
            with self._changing:
                self._changing.wait_for(lambda: not self._small_calls, longest_s)
            self._large_took_s = 0.0

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Say that a call waits for work in the background, so that it gives way to nobody."""
        with self._changing:
            self._hurrying += 1
        try:
            yield
        finally:
            with self._changing:
                self._hurrying -= 1

    def give_way(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until the foreground is quiet, a quarter of a second at most."""
        until = clock() + _GIVE_WAY_S
        while not self._hurrying:
            now = clock()
            quiet_at = now + _QUIET_S if self._active else self._last_s + _QUIET_S
            pause = min(quiet_at, until) - now
            if pause <= 0:
                return
            sleep(pause)


class Shift:
    """Steps of one worker in the background, which give way to calls every 50 ms, not before each:
    beside calls without a pause only four steps a second would be done, however small they are, and
    tenants that have little to do would wait for each other for minutes.

    Args:
        give_way: waits a moment while calls are at work.
    """

    def __init__(
        self, give_way: Callable[[], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._give_way = give_way
        self._clock = clock
        self._began_s = float("-inf")

    def step(self) -> None:
        """Begin a step: give way before it if those since the last time took long, or a pause."""
        if self._clock() - self._began_s > _AT_WORK_S:
            self._give_way()
            self._began_s = self._clock()


class _Computing(AbstractContextManager[None]):
    """The block in which a call computes; see `Foreground.computing`.

    Calls pass several of them, and a generator would cost twice as much.
    """

    __slots__ = ("_cost", "_foreground", "_size", "_to_the_end")

    def __init__(self, foreground: Foreground, size: Size, cost: float, to_the_end: bool) -> None:
        self._foreground = foreground
        self._size = size
        self._cost = cost
        self._to_the_end = to_the_end

    def __enter__(self) -> None:
        interpreter.leave_turn()  # Half of what follows is done in libraries; the gates count.
        foreground = self._foreground
        foreground._begin()
        try:
            foreground._enter(self._size, self._cost, stay=self._to_the_end)
            try:
                if not self._to_the_end:
                    deadline.check()  # To go on would only prolong the jam.
            except BaseException:
                foreground._leave(self._size)
                raise
        except BaseException:
            foreground._end()
            raise

    def __exit__(self, *_raised: object) -> None:
        self._foreground._leave(self._size)
        self._foreground._end()


def _do(step: Callable[[], object]) -> None:
    step()
