"""The one process that has a data folder, decided by a lock of the operating system."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from mneme_server.common import private_files
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.edge.local import record as records
from mneme_server.edge.local.record import Record, State

_log = structlog.get_logger(__name__)
_LOCK = "server.lock"
_CATALOG = "catalog.db"
_UNNAMED_S = 5.0
"""How long a process that has the lock may take to say in the record what it is."""
_CHANGING_S = 60.0
"""How long a server that starts or ends is waited for."""
_POLL_S = 0.05
_MOUNTS = Path("/proc/self/mounts")
_REMOTE = ("nfs", "cifs", "smb", "ncpfs", "afs", "fuse.sshfs", "fuse.rclone")


@contextmanager
def only_process_in(folder: Path) -> Iterator[None]:
    """Hold the data folder; SQLite would let two servers in, the indexes would not agree.

    Raises:
        FailedPrecondition: another process has it, or it cannot be used.
    """
    make_folder(folder)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FailedPrecondition(
            f"another process is using MNEME_DATA_DIR={folder}; stop it first",
            reason=Reason.INITIALIZATION_FAILED,
        ) from None
    try:
        former = records.read(folder)
        if former is not None:  # Who looks for a local server here must not take this for one.
            records.write(folder, replace(former, state=State.ELSEWHERE, address=""))
        yield
    finally:
        lock.release()


class LocalFolder:
    """A folder that this process serves to its participants. Close it when all else is closed.

    Args:
        path: the folder.
        lock: the folder's lock, held.
        version: this server's version of Mneme.
    """

    def __init__(self, path: Path, lock: FileLock, version: str) -> None:
        self.path = path
        self._lock = lock
        former = records.read(path)
        # At once: whoever comes now must see that a local server is about to serve.
        self.write(
            Record(
                State.STARTING,
                version,
                key=former.key if former and former.key else f"mn_{secrets.token_urlsafe(32)}",
                instance=secrets.token_hex(16),
                pid=os.getpid(),
            )
        )

    def write(self, record: Record) -> None:
        """Tell participants."""
        self.record = record
        records.write(self.path, record)
        self._written = _identity(self.path / records.NAME)

    @property
    def is_ours(self) -> bool:
        """Whether the folder at this path is still the one that is locked, with our record.

        It is not after somebody moved or removed it; what is written then nobody finds.
        """
        return _identity(self.path / records.NAME) == self._written

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()


def take(folder: Path, version: str) -> LocalFolder | None:
    """Take the folder, or return None because a local server serves it already.

    A local server that is starting or ending is waited for.

    Args:
        folder: the folder; made when missing.
        version: this server's version of Mneme.

    Raises:
        FailedPrecondition: another kind of process has it, it cannot be used, or it, or a file in
            it that says who serves, is in another user's hands.
    """
    make_folder(folder)
    _require_own(folder)
    lock = FileLock(folder / _LOCK)
    _require_local_disk(folder)
    begun = time.monotonic()
    while True:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            record = records.read(folder)
            if record is not None and record.state is State.SERVING:
                return None
            waited = time.monotonic() - begun
            if waited > (_CHANGING_S if _is_changing(record) else _UNNAMED_S):
                raise _taken(folder, record) from None
            time.sleep(_POLL_S)
        else:
            return LocalFolder(folder, lock, version)


def _is_changing(record: Record | None) -> bool:
    return record is not None and record.state in (State.STARTING, State.ENDING)


def _taken(folder: Path, record: Record | None) -> FailedPrecondition:
    if record is not None and _is_changing(record):
        what = f"a server of {folder} (process {record.pid}) has been {record.state} for a minute"
    else:
        what = (
            f"another process is using {folder} and is no local server, perhaps `mneme-server"
            " serve` or `reindex`: stop it, or use its address instead of the folder"
        )
    return FailedPrecondition(what, reason=Reason.INITIALIZATION_FAILED)


def make_folder(folder: Path) -> None:
    """Make the folder where it is missing, and see that it can be written to, and by its owner
    only.

    Raises:
        FailedPrecondition: it cannot.
    """
    try:
        folder.mkdir(mode=private_files.FOLDER, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(0, "it cannot be written to")
        others_may = private_files.make_private(folder)
    except OSError as error:
        raise FailedPrecondition(
            f"the folder {folder} cannot be used: {error.strerror}",
            reason=Reason.INITIALIZATION_FAILED,
        ) from error
    for path in others_may:
        _log.warning(
            "others than the server's user may read this; it belongs to another", path=path
        )


def _identity(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _require_own(folder: Path) -> None:
    """Refuse a folder that somebody else could serve, or has prepared: participants would tell
    their memories to whoever that is."""
    found = private_files.strangers(folder, (records.NAME, _LOCK, _CATALOG))
    if found:
        path, how = found[0]
        raise FailedPrecondition(
            f"{path} {how}: a folder's server is used by one user alone, who must own the folder"
            " and what lies in it; choose another folder",
            reason=Reason.INITIALIZATION_FAILED,
        )


def _require_local_disk(folder: Path) -> None:
    """Refuse a file system of another machine: neither locks nor SQLite's WAL hold across it."""
    kind = _file_system(folder.resolve())
    if kind.startswith(_REMOTE):
        raise FailedPrecondition(
            f"{folder} is on a network file system ({kind}), which two machines could serve"
            " at once; choose a folder on this machine's disk",
            reason=Reason.INITIALIZATION_FAILED,
        )


def _file_system(folder: Path) -> str:
    """The kind of file system that holds the folder; empty where the system does not tell."""
    try:
        mounts = [line.split(" ") for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        return ""
    holding = [
        (len(point), kind)
        for _, point, kind, *_ in mounts
        if folder.is_relative_to(point.replace("\\040", " "))
    ]
    return max(holding)[1] if holding else ""
