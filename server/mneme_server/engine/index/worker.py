"""Work that can wait: building graphs, writing snapshots, committing.

One thread for the whole process, so that background work takes at most one core and the memory of
one build, however many tenants are open.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

import structlog

_IDLE_S = 60.0

_log = structlog.get_logger(__name__)


class BackgroundWorker:
    """Runs functions one after another, each not before its time.

    The thread starts with the first function and ends after a minute without any. A function
    must not raise; whoever schedules it catches and reports.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def schedule(self, delay_s: float, run: Callable[[], None]) -> None:
        """Call `run` on the worker's thread, `delay_s` seconds from now at the earliest."""
        with self._changed:
            entry = (time.monotonic() + delay_s, next(self._numbers), run)
            heapq.heappush(self._queue, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="index-worker", daemon=True)
                self._thread.start()
            if self._queue[0] is entry:  # Else it wakes before that.
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                run = self._next()
                if run is None:
                    self._thread = None
                    return
            try:
                run()
            except BaseException:  # One task's fault must not end the work of all tenants.
                _log.exception("work in the background failed")

    def _next(self) -> Callable[[], None] | None:
        idle_until = time.monotonic() + _IDLE_S
        while True:
            now = time.monotonic()
            if self._queue:
                if self._queue[0][0] <= now:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(self._queue[0][0] - now)
                idle_until = time.monotonic() + _IDLE_S
            elif now >= idle_until:
                return None
            else:
                self._changed.wait(idle_until - now)


SHARED_WORKER = BackgroundWorker()
