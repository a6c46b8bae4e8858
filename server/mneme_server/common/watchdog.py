"""A watchdog: one thread tells whatever takes longer than it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import structlog

_NEVER = float("inf")

_log = structlog.get_logger(__name__)


class Limit:
    """Something that is watched over, until `forget`."""

    __slots__ = ("give_up", "until")

    def __init__(self, until: float, give_up: Callable[[], object]) -> None:
        self.until = until
        self.give_up = give_up


class Watchdog:
    """Calls `give_up` for what is not done in time. Thread-safe.

    A `threading.Timer` is a thread for each thing that is waited for; this is one for all. What is
    watched over is at work, so there are never many.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()  # Guards what follows.
        self._limits: set[Limit] = set()
        self._looks_at = _NEVER
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def limit(self, seconds: float, give_up: Callable[[], object]) -> Iterator[None]:
        """Call `give_up` when the block takes longer than so many seconds."""
        limit = self.watch(seconds, give_up)
        try:
            yield
        finally:
            self.forget(limit)

    def watch(self, seconds: float, give_up: Callable[[], object]) -> Limit:
        """Call `give_up` in so many seconds, unless it is forgotten before.

        It runs on the watchdog's thread, once, and must not wait for anything.
        """
        limit = Limit(time.monotonic() + seconds, give_up)
        with self._changed:
            self._limits.add(limit)
            if self._thread is None and not self._closed:
                self._start()
            if limit.until < self._looks_at:
                self._changed.notify()
        return limit

    def forget(self, limit: Limit) -> None:
        """Watch over it no longer."""
        with self._changed:
            self._limits.discard(limit)

    def close(self) -> None:
        """Stop watching."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        with suppress(RuntimeError):  # No memory for it: it is tried again with the next limit.
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                late = sorted(
                    (limit for limit in self._limits if limit.until <= now),
                    key=lambda limit: limit.until,
                )
                self._limits.difference_update(late)
                if not late:
                    self._looks_at = min((limit.until for limit in self._limits), default=_NEVER)
                    self._changed.wait(None if self._looks_at == _NEVER else self._looks_at - now)
                    self._looks_at = -_NEVER  # Awake: whatever comes meanwhile is seen.
            while late:
                _give_up(late.pop(0))  # And hold it no longer: it may hold a call.


def _give_up(limit: Limit) -> None:
    try:
        limit.give_up()
    except Exception:
        _log.exception("what took too long could not be given up")
