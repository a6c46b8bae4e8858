"""Short pieces of work that calls left behind, tenants by turns: what open streams send."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

import structlog

from mneme_server.common import fairness
from mneme_server.common.errors import is_failure
from mneme_server.common.fairness import FairQueue
from mneme_server.common.watchdog import Watchdog

Step = Callable[[], object]

_SLOW_S = 0.05
"""A step that takes longer waits for somebody: a peer that does not read, a tenant that opens."""

_log = structlog.get_logger(__name__)


class _Turn:
    """A step at work."""

    __slots__ = ("lane", "slow", "step")

    def __init__(self, lane: str, step: Step) -> None:
        self.lane = lane
        self.step: Step | None = step
        self.slow = False


class Steps:
    """Does steps on a few threads. Nobody waits for another's slow step: its thread is replaced.

    Of the threads that slow steps may hold, a tenant gets no more than it leaves free, as calls do.

    Args:
        watchdog: tells which steps are slow.
        threads: steps that may be at work at once, beside the slow ones.
        most: threads in all.
    """

    def __init__(self, watchdog: Watchdog, threads: int = 4, most: int = 64) -> None:
        self._watchdog = watchdog
        self._at_once = threads
        self._most = most
        self._changed = threading.Condition()  # Guards what follows.
        self._waiting: FairQueue[_Turn] = FairQueue()
        self._brisk = 0
        self._slow: Counter[str] = Counter()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def run(self, tenant_id: str, step: Step) -> None:
        """Have a step done soon, in the tenant's turn; empty is the server's own.

        Raises:
            RuntimeError: not one thread can be had; it will not be done.
        """
        turn = _Turn(tenant_id, step)
        with self._changed:
            self._waiting.push(tenant_id, turn)
            try:
                self._wake_one()
            except RuntimeError:
                self._waiting.remove(tenant_id, turn)
                raise

    def close(self) -> None:
        """Do what waits already, and nothing that comes later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wake_one(self) -> None:
        """Have a thread look for a step: an idle one, or a new one if there may be more."""
        if self._idle:
            self._changed.notify()
        elif self._threads < self._most and self._brisk < self._at_once:
            self._threads += 1
            try:
                threading.Thread(target=self._work, name="steps", daemon=True).start()
            except RuntimeError:  # No memory for it: the step waits for one that runs.
                self._threads -= 1
                if not self._threads:
                    raise

    def _work(self) -> None:
        while turn := self._next():
            limit = self._watchdog.watch(_SLOW_S, partial(self._is_slow, turn))
            try:
                fairness.enter(turn.lane)
                if turn.step is not None:
                    turn.step()
            except BaseException as error:
                if not is_failure(error):
                    raise
                _log.exception("a step failed", tenant=turn.lane)
            finally:
                self._watchdog.forget(limit)
                self._done(turn)
            del turn, limit  # An idle thread keeps nothing.

    def _is_slow(self, turn: _Turn) -> None:
        with self._changed:
            if turn.step is not None:
                turn.slow = True
                self._brisk -= 1
                self._slow[turn.lane] += 1
                if self._waiting:
                    self._wake_one()

    def _done(self, turn: _Turn) -> None:
        with self._changed:
            turn.step = None
            if not turn.slow:
                self._brisk -= 1
                return
            self._slow[turn.lane] -= 1
            if not self._slow[turn.lane]:
                del self._slow[turn.lane]

    def _next(self) -> _Turn | None:
        with self._changed:
            while True:
                if self._brisk < self._at_once and (turn := self._waiting.pop(self._may_begin)):
                    self._brisk += 1
                    if self._waiting:
                        self._wake_one()
                    return turn
                if self._closed or self._idle >= self._at_once:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _may_begin(self, turn: _Turn) -> bool:
        mine = self._slow[turn.lane]
        return not mine or mine < self._most - self._at_once - self._slow.total()
