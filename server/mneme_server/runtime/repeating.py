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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start; the first call comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when no call is running. Stopping what never started is fine."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                self._action()
            except Exception:
                _log.exception("repeated work failed", work=self._thread.name)
