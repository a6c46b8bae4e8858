"""Loans of something scarce, counted for operators."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Lending:
    """What a pool lends. Thread-safe.

    Attributes:
        in_use: how many are lent now.
        waits: how often somebody found none free.
        waited_s: how long they all waited, in seconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.in_use = self.waits = 0
        self.waited_s = 0.0

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Count one as lent for the block."""
        with self._lock:
            self.in_use += 1
        try:
            yield
        finally:
            with self._lock:
                self.in_use -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the block as a wait."""
        began = time.monotonic()
        with self._lock:
            self.waits += 1
        try:
            yield
        finally:
            with self._lock:
                self.waited_s += time.monotonic() - began
