"""The turns that tenants take at work in the background.

What there is to do stands in a table of each tenant, written with what made it necessary, so
nothing is lost when the process dies: a tenant that is opened with a queue goes on where it
stopped. Here is only whose turn it is, and when.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import structlog

from mneme_server.common import fairness, fencing, turns
from mneme_server.common.clock import MICROSECONDS, doubled, now_us
from mneme_server.common.errors import MnemeError, NotFound, is_failure
from mneme_server.common.fencing import OWN, Fence, LeaseLost, Leases
from mneme_server.common.turns import Turn
from mneme_server.common.watchdog import Watchdog
from mneme_server.engine.scheduling.foreground import Foreground, Shift

_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 600.0
MOST_ATTEMPTS = 12
"""Attempts at a piece of work that fails by itself, in about forty minutes: it is not tried for
ever."""
_FAILED_STEP_S = 5.0
"""Until a tenant's next turn after a step that failed without saying when to try again."""
_LOOK_AGAIN_S = 60.0
"""The longest wait: turns are times of the wall clock, which may be set meanwhile."""

_SLOW_S = 1.0
"""A step that takes longer keeps no other tenant waiting."""
_MOST_REPLACED = 4

_LAST_STEP_S = 2.0
"""How long stopping waits for the step at hand."""

_log = structlog.get_logger(__name__)


def retry_delay_s(attempts: int) -> float:
    """Return how long work waits that has failed before, in seconds: doubled by every attempt."""
    return doubled(_FIRST_RETRY_S, attempts, _LONGEST_RETRY_S)


class TenantWorker(ABC):
    """Drains the queues of all tenants, in turn, on one thread.

    Where several servers serve the same tenants, a step is done by whoever holds the lease of the
    tenant's work; the others drop the turn, and that one is told.

    A step that takes long waits for its tenant: one that opens, or takes a large write in. Another
    thread takes the others' turns meanwhile.

    Args:
        work: what it does, in a word or two, for the log.
        thread: the thread's name.
    """

    everywhere = False
    """Whether each server does it for itself, of what it has in memory."""
    inherits = False
    """Whether, done everywhere, it may be left by a server that is gone."""

    def __init__(self, work: str, thread: str) -> None:
        self._leases: Leases = OWN
        self._work = work
        self._name = thread
        self._watchdog = Watchdog()
        self._turn: Callable[[], Turn] = lambda: turns.FREE
        self._shift = Shift(lambda: None)
        self._changed = threading.Condition()  # Guards what follows.
        self._turns: dict[str, int] = {}  # tenant -> when its turn comes, in the order of waiting
        self._at_work: set[str] = set()
        self._replaced: set[str] = set()  # Of those at work: another thread has taken over.
        self._stopping = False
        self._threads: set[threading.Thread] = set()

    @abstractmethod
    def step(self, tenant_id: str) -> int | None:
        """Do one batch of a tenant's work, here and now; the thread calls it, once started.

        Returns the time of its next turn in microseconds, or None when its queue is empty.
        """

    def share(self, leases: Leases) -> None:
        """Do only what is leased to this server. Before it is started."""
        if not self.everywhere:
            self._leases = leases

    def give_way_to(self, foreground: Foreground) -> None:
        """Compute in turns with the calls, large ones. Before it is started."""
        self._turn = partial(foreground.turn, large=True)
        self._shift = Shift(foreground.give_way)

    def give_way(self) -> None:
        """Let calls go first; for a step that has something to do, before it begins with it."""
        self._shift.step()

    def look_again(self) -> None:
        """Take note of turns that other servers may have noted; there are none."""
        return None

    def is_mine(self, tenant_id: str) -> bool:
        """Tell whether this server does the tenant's work, as far as it knows."""
        return self._leases.holds(tenant_id)

    def start(self, watchdog: Watchdog | None = None) -> None:
        """Start the worker; the watchdog tells which steps take long."""
        if watchdog is not None:
            self._watchdog = watchdog
        with self._changed:
            self._start_thread()

    def wake(self, tenant_id: str, due_us: int = 0) -> None:
        """Say that the tenant has work that is due at a time; the default is now."""
        with self._changed:
            if due_us < self._turns.get(tenant_id, due_us + 1):
                self._turns[tenant_id] = due_us
                self._changed.notify()

    def is_waiting(self, tenant_id: str) -> bool:
        """Tell whether the tenant has work, as far as the worker knows."""
        with self._changed:
            return tenant_id in self._turns or tenant_id in self._at_work

    def due_of(self, tenant_id: str) -> int | None:
        """Return when the tenant's next turn is, in microseconds; None without one."""
        with self._changed:
            return self._turns.get(tenant_id)

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop: what a step fails at now is no fault of the work's."""
        return self._stopping

    def begin_stop(self) -> None:
        """Say that the step at hand is the last; what is left stays in the queues."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop once the step at hand is done; one that hangs is left behind, to be done again."""
        self.begin_stop()
        with self._changed:
            if not self._changed.wait_for(lambda: not self._threads, _LAST_STEP_S):
                _log.warning(f"the last {self._work} step does not end; it is left behind")

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _run(self) -> None:
        try:
            while (tenant_id := self._next()) is not None:
                with self._watchdog.limit(_SLOW_S, partial(self._replace, tenant_id)):
                    self._do_step(tenant_id)
                if self._done(tenant_id):
                    return
        finally:
            with self._changed:
                self._threads.discard(threading.current_thread())
                self._changed.notify_all()

    def _do_step(self, tenant_id: str) -> None:
        fairness.enter(tenant_id)
        turns.enter(self._turn())
        fence: Fence | None = None
        try:
            fence = self._leases.hold(tenant_id)
            if fence is None:
                return
            with fencing.under(fence):
                due_us = self.step(tenant_id)
        except NotFound:
            return  # The tenant was deleted meanwhile.
        except LeaseLost:
            if fence is not None:
                self._leases.lost(fence)
            due_us = now_us()  # Another server has the work now, and is told.
        except BaseException as error:
            if not is_failure(error):
                raise
            expected = isinstance(error, MnemeError)
            _log.error(
                f"{self._work} step failed, will be tried again", tenant=tenant_id,
                error=str(error), exc_info=not expected,
            )  # fmt: skip
            delay_s = (error.retry_after_s if isinstance(error, MnemeError) else None) or (
                _FAILED_STEP_S
            )
            due_us = now_us() + int(delay_s * MICROSECONDS)
        if due_us is not None:
            self.wake(tenant_id, due_us)

    def _replace(self, tenant_id: str) -> None:
        """Have another thread take the turns of other tenants while a step takes long."""
        with self._changed:
            waited_for = tenant_id in self._at_work and not self._stopping
            if waited_for and len(self._replaced) < _MOST_REPLACED:
                self._replaced.add(tenant_id)
                self._start_thread()

    def _done(self, tenant_id: str) -> bool:
        """Note that a step is done; tell whether another thread has taken over from this one."""
        with self._changed:
            self._at_work.discard(tenant_id)
            self._changed.notify()
            if tenant_id not in self._replaced:
                return False
            self._replaced.discard(tenant_id)
            return True

    def _next(self) -> str | None:
        """Wait for a tenant whose turn has come, the one that waits longest; None when stopping."""
        with self._changed:
            while not self._stopping:
                now = now_us()
                waiting = {t: due for t, due in self._turns.items() if t not in self._at_work}
                for tenant_id, due_us in waiting.items():
                    if due_us <= now:
                        del self._turns[tenant_id]
                        self._at_work.add(tenant_id)
                        return tenant_id
                left_s = (min(waiting.values(), default=now) - now) / MICROSECONDS
                self._changed.wait(min(left_s, _LOOK_AGAIN_S) if waiting else None)
            return None
