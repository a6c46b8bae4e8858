"""Folders with servers of their own, seen from outside: by what the system knows of them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

_PATIENCE_S = 60.0


def record_of(folder: Path) -> dict[str, Any]:
    """What the folder's server says of itself."""
    values: dict[str, Any] = json.loads((folder / "local.json").read_text())
    return values


def servers_of(folder: Path) -> list[int]:
    """The processes that hold the folder's catalog open, whatever they say of themselves."""
    catalog = str(folder.resolve() / "catalog.db")
    return [pid for pid in _processes() if catalog in _open_files(pid)]


def is_free(folder: Path) -> bool:
    """Whether nobody has the folder."""
    lock = FileLock(folder / "server.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    return True


def kill_server(folder: Path, number: int = signal.SIGKILL) -> None:
    """End the folder's server, and wait until it has gone."""
    os.kill(record_of(folder)["pid"], number)
    wait_until(lambda: is_free(folder), "the server has gone")


def wait_until(holds: Callable[[], bool], what: str, patience_s: float = _PATIENCE_S) -> None:
    """Wait for something; fail when it does not come."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, f"not within {patience_s:.0f} s: {what}"
        time.sleep(0.05)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _open_files(pid: int) -> set[str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # It has gone, or is somebody else's.
        return set()
    found = set()
    for name in names:
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found
