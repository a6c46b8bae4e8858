"""Something that is done again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

_log = structlog.get_logger(__name__)


class Repeating:
    """Calls `action` every `interval_s` seconds on a thread of its own, until it is stopped.

    What fails is logged and tried again the next time.
    """

    def __init__(self, action: Callable[[], object], interval_s: float, name: str) -> None:
        self._action = action
        self._interval_s = interval_s
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start; the first call comes after one interval."""
        self._thread.start()

    def soon(self) -> None:
        """Do it at once, and not only when the interval is over."""
        self._due.set()

    def stop(self) -> None:
        """Stop; returns when no call is running. Stopping what never started is fine."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._due.wait(self._interval_s)
            self._due.clear()
            if self._stopping:
                return
            try:
                self._action()
            except Exception:
                _log.exception("repeated work failed", work=self._thread.name)
