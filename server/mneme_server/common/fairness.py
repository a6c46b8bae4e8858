"""Tenants take turns at what they share.

A turn is due by what a tenant was given, not by what it asks for: who asks seldom is next whenever
it asks, and a thousand requests of one tenant delay another's by those that are at work already.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from mneme_server.common import deadline, interpreter

T = TypeVar("T")

_current: ContextVar[str] = ContextVar("mneme_on_behalf_of", default="")


def enter(tenant_id: str) -> None:
    """Count the rest of this context's work as the tenant's. It decides whose turn it is, never
    whose data is read. Threads that it starts do not inherit it."""
    _current.set(tenant_id)


def on_behalf_of() -> str:
    """Return the tenant whose work this is; empty for the server's own."""
    return _current.get()


class FairQueue(Generic[T]):
    """What waits, in lanes: first in, first out within a lane, and lanes by turns. Not thread-safe.

    Each item has a cost, in any unit. The next item is the head of the lane that was given least,
    by cost, since it began to wait; a lane that begins counts as given as much as the one that was
    served last (start-time fair queueing). So between two items of a waiting lane another one gets
    at most what the first cost, and one item more.
    """

    def __init__(self) -> None:
        self._lanes: dict[Hashable, deque[tuple[T, float]]] = {}
        self._given: dict[Hashable, float] = {}
        self._now = 0.0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def waiting_of(self, lane: Hashable) -> int:
        """Return how many items of a lane wait."""
        return len(self._lanes.get(lane, ()))

    def push(self, lane: Hashable, item: T, cost: float = 1.0) -> None:
        """Put an item at the end of its lane."""
        if lane not in self._lanes:
            self._lanes[lane] = deque()
            self._given[lane] = max(self._given.get(lane, 0.0), self._now)
        self._lanes[lane].append((item, cost))
        self._size += 1

    def pop(self, may: Callable[[T], bool] = lambda _item: True) -> T | None:
        """Remove and return the item whose turn it is, of those heads of lanes that `may` go now;
        None when there is none."""
        for lane in sorted(self._lanes, key=self._given.__getitem__):
            item, cost = self._lanes[lane][0]
            if may(item):
                self._lanes[lane].popleft()
                self._now = max(self._now, self._given[lane])
                self._given[lane] += cost
                self._removed(lane)
                return item
        return None

    def remove(self, lane: Hashable, item: T) -> bool:
        """Remove an item that need not wait any more; tell whether it did."""
        for place, (waiting, _) in enumerate(self._lanes.get(lane, ())):
            if waiting is item:
                del self._lanes[lane][place]
                self._removed(lane)
                return True
        return False

    def _removed(self, lane: Hashable) -> None:
        self._size -= 1
        if not self._lanes[lane]:
            del self._lanes[lane]
        if not self._lanes:  # Nobody waits, so nobody has been given less than another.
            self._given.clear()
            self._now = 0.0


class FairGate:
    """Lets so many through at once, and of those who wait tenants by turns. Thread-safe."""

    def __init__(self, slots: int) -> None:
        self._changing = threading.Lock()  # Guards the two below.
        self._free = slots
        self._waiting: FairQueue[threading.Event] = FairQueue()

    @contextmanager
    def turn(self, cost: float = 1.0) -> Iterator[None]:
        """Do the block in a slot.

        Raises:
            Abandoned: nobody waits for the call any more.
        """
        self.enter(cost)
        try:
            yield
        finally:
            self.leave()

    def enter(self, cost: float = 1.0, *, stay: bool = False, patience_s: float = math.inf) -> bool:
        """Wait for a slot and take it; `leave` gives it back.

        Args:
            cost: what it counts as, beside others' turns.
            stay: wait also when the caller has left.
            patience_s: wait no longer than this, in seconds.

        Returns:
            Whether there was one in time.

        Raises:
            Abandoned: nobody waits for the call any more; it has no slot.
        """
        until = time.monotonic() + patience_s
        if not stay:
            deadline.check()
        tenant_id = on_behalf_of()
        with self._changing:
            if self._free:
                self._free -= 1
                return True
            granted = threading.Event()
            self._waiting.push(tenant_id, granted, cost)
        interpreter.leave_turn()
        while not granted.wait(_pause(until, stay=stay)):
            left = not stay and deadline.time_left() == 0
            if not left and time.monotonic() < until:
                continue
            with self._changing:
                if not self._waiting.remove(tenant_id, granted):
                    break  # It was granted meanwhile: who has the slot looks at the time again.
            if left:
                raise deadline.Abandoned
            return False
        return True

    def is_waited_for_by_others(self) -> bool:
        """Tell whether another tenant waits for a slot. Who asks should have one."""
        with self._changing:
            return len(self._waiting) > self._waiting.waiting_of(on_behalf_of())

    def leave(self) -> None:
        """Give a slot to whose turn it is."""
        with self._changing:
            granted = self._waiting.pop() if self._waiting else None
            if granted is None:
                self._free += 1
            else:
                granted.set()


def _pause(until: float, *, stay: bool) -> float:
    """Return how long to wait before looking again. Who stays does not look at the caller's time:
    once that is over, there would be no pause."""
    pause_s = min(deadline.LOOK_EVERY_S, max(0.0, until - time.monotonic()))
    return pause_s if stay else deadline.pause(pause_s)
