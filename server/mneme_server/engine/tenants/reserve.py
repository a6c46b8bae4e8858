"""Room on the disk that is let go when it is full, so that keys can be revoked, tenants deleted and
things forgotten all the same."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

_log = structlog.get_logger(__name__)

_SPARE_BYTES = 1024 * 1024
"""What is left to others: it never takes the disk's last bytes."""


class Reserve:
    """A file that takes room while nobody needs it. Thread-safe.

    Args:
        path: where it lies: on the disk that may become full. The folder is there.
        size: its bytes; 0: there is none.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._lock = threading.Lock()
        self._lent = 0
        self._held = path.stat().st_size if path.is_file() else 0  # Left by one that was killed.
        if self._held > size:
            self._drop()

    @property
    def held(self) -> int:
        """The bytes that it takes now."""
        return self._held

    def make(self) -> None:
        """Take the room, or as much of it as there is, unless it is lent."""
        with self._lock:
            if not self._lent:
                self._take()

    def close(self) -> None:
        """Let the room go for good."""
        with self._lock:
            self._lent += 1
            self._drop()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the room go for the block, if the disk is about to be full; take it again after."""
        with self._lock:
            self._lent += 1
            if self._held and self._free() < self._size:
                _log.warning("disk full: the reserve is let go", bytes=self._held)
                self._drop()
        try:
            yield
        finally:
            with self._lock:
                self._lent -= 1
                if not self._lent:
                    self._take()

    def _take(self) -> None:
        wanted = min(self._size, self._held + max(0, self._free() - _SPARE_BYTES))
        if wanted <= self._held:
            return
        try:
            with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, wanted)
        except OSError:  # Others were faster.
            self._drop()
            return
        self._held = wanted

    def _drop(self) -> None:
        self._path.unlink(missing_ok=True)
        self._held = 0

    def _free(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize
