"""What is left of a call's time."""

from __future__ import annotations

import time


class TimeLeft:
    """Tells what is left of a call's time, which several attempts, or joining a server, share.

    Args:
        timeout: seconds; None: no limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def __call__(self) -> float | None:
        """Seconds until the end, at least 0; None without one."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())
