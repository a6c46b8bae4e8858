"""The folder for files that an index maps into memory, of this process alone.

Whoever truncates a mapped file, or a disk that cannot read it, ends the process that has it mapped.
So nothing in a tenant's folder is ever mapped: what lies there is a copy that is checked when it is
read, and the files at work lie here, in memory where the system offers that, and are gone with the
process.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

from filelock import FileLock, Timeout

_IN_MEMORY = Path("/dev/shm")  # Linux's file system in memory; others have none.
_PREFIX = "mneme-index-"
_LOCK = "lock"
_SPARE_BYTES = 24 * 1024 * 1024
_ROOM = 3
"""A folder needs room for so many times what it starts with: segments are merged into new ones."""
_TRIES = 10

_lock = threading.Lock()
_roots: dict[Path, tuple[Path, FileLock]] = {}


def new_folder(needed_bytes: int) -> Path:
    """Return an empty folder for files at work, in memory if there is room for them."""
    wanted = _ROOM * needed_bytes + _SPARE_BYTES
    place = _IN_MEMORY
    try:
        if shutil.disk_usage(place).free < wanted:
            place = Path(tempfile.gettempdir())
        return Path(tempfile.mkdtemp(dir=_root(place)))
    except OSError:  # There is no such place, or it may not be written.
        return Path(tempfile.mkdtemp(dir=_root(Path(tempfile.gettempdir()))))


def remove(folder: Path) -> None:
    """Remove a folder; who has files of it mapped keeps them.

    While tantivy looks whether there is anything new, it makes a file of no bytes there, which may
    come between the last file and the folder.
    """
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _root(place: Path) -> Path:
    """Return this process's folder in `place`, making it at first."""
    with _lock:
        known = _roots.get(place)
        if known is not None and known[0].is_dir():
            return known[0]
        _sweep(place)
        root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        held = FileLock(root / _LOCK)
        held.acquire()  # The operating system lets go of it when the process ends, however it does.
        if not _roots:
            atexit.register(_remove_all)
        _roots[place] = (root, held)
        return root


def _sweep(place: Path) -> None:
    """Remove what processes left that were killed."""
    for root in place.glob(f"{_PREFIX}*"):
        if not (root / _LOCK).exists():
            continue  # Another process is just making it.
        lock = FileLock(root / _LOCK)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # It is alive, or somebody else's.
            continue
        shutil.rmtree(root, ignore_errors=True)
        lock.release()


def _remove_all() -> None:
    for root, _ in _roots.values():
        remove(root)
