"""The disk of a server on a shared store: what it has there, within bounds, can be built again."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common.errors import MnemeError
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.nodes import Erasures
from mneme_server.engine.tenants.opener import COPIES
from mneme_server.engine.tenants.registry import TenantRegistry

_SHARE = 2
"""Of the disk: what it may take by default, one part of so many."""
_log = structlog.get_logger(__name__)
_FILE = "node.json"
_MARK_BYTES = 16
_OF_SQLITE = "*.db*"
"""The databases of tenants that were kept on SQLite, and moved from there."""


class LocalDisk:
    """Removes the indexes and copies of tenants that were used longest ago.

    A tenant's folder has the time at which the tenant was opened last.

    Args:
        root: the folder with a folder for each tenant.
        tenants: those that are open, which keep what they have.
        most_bytes: what all of them may take; None: half of the disk.
    """

    def __init__(
        self, root: Path, tenants: TenantRegistry[Any], most_bytes: int | None = None
    ) -> None:
        self._root = root
        self._tenants = tenants
        self._most_bytes = most_bytes
        self._measured: dict[str, tuple[float, int]] = {}

    def keep_within_bounds(self) -> None:
        """Look how much there is, and remove what is too much. Takes long."""
        if not self._root.exists():
            return
        most = self._most_bytes or shutil.disk_usage(self._root).total // _SHARE
        found = self._found()
        excess = sum(size for _, _, size in found) - most
        for _, folder, size in sorted(found):
            if excess <= 0:
                return
            if size and self._remove(folder):
                excess -= size

    def _found(self) -> Sequence[tuple[float, Path, int]]:
        """Return what there is: when it was used last, where, and how much. What nobody has used
        or changed since it was measured is not measured again: there may be very many."""
        used = {folder.name: _used(folder) for folder in self._root.iterdir()}
        growing = {tenant.tenant_id for tenant in self._tenants.open_tenants()}
        found, measured = [], {}
        for name, at in used.items():
            known_at, size = self._measured.get(name, (None, 0))
            if known_at != at:
                size = _size(self._root / name)
            if name not in growing:
                measured[name] = (at, size)
            found.append((at, self._root / name, size))
        self._measured = measured
        return found

    def _remove(self, folder: Path) -> bool:
        try:
            with self._tenants.if_closed(folder.name) as closed:
                if closed:
                    remove_copies(folder)
        except MnemeError:  # It is being deleted, or made from a backup.
            return False
        except OSError as error:
            _log.warning("a tenant's indexes cannot be removed", tenant=folder.name,
                         error=str(error))  # fmt: skip
            return False
        if closed:
            _log.info("a tenant's indexes made room for others", tenant=folder.name)
        return closed


def _used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # It is being removed.
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    for name in COPIES:
        for inside, _, files in os.walk(folder / name):  # Several times as fast as `rglob`.
            for file in files:
                try:
                    total += os.stat(os.path.join(inside, file)).st_size
                except OSError:
                    continue
    return total


def enter(erasures: Erasures, data_dir: Path) -> None:
    """Make the folder known, or take the place that it has.

    Each start marks the place and the folder anew. So a folder that was put back from a copy is
    known for what it is: what was erased since may be in it, and nothing of tenants stays there.

    Raises:
        Unavailable: the store cannot be reached now.
        OSError: what lies in the folder of before that cannot be removed.
    """
    place, marks = _read(data_dir / _FILE)
    known = erasures.mark_of(place) if place else None
    mark, is_had = known or ("", False)
    if mark not in marks:
        if known is not None or not erasures.is_first():
            for folder in _folders(data_dir / "tenants"):
                remove_copies(folder)
        if known is None or is_had:
            place = new_id()
    made = secrets.token_hex(_MARK_BYTES)
    # Whichever of the two the store has when this is cut short, the folder knows it.
    _write(data_dir / _FILE, {"place": place, "marks": [made, mark]})
    erasures.enter(place, f"{socket.gethostname()}/{place[-8:]}", made)


def remove_copies(folder: Path) -> None:
    """Remove what is made of a tenant's rows from its folder, so that it is made again.

    Raises:
        OSError: some of it cannot be removed.
    """
    for name in COPIES:
        _remove(folder / name)


def remove_folder(folder: Path) -> None:
    """Remove the folder of a tenant that is gone. What lies there of one that was kept on SQLite,
    and moved, stays.

    Raises:
        OSError: some of it cannot be removed.
    """
    kept = set(folder.glob(_OF_SQLITE))
    if not kept:
        _remove(folder)
        return
    for path in set(folder.iterdir()) - kept:
        if path.is_dir():
            _remove(path)
        else:
            path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    while folder.exists():
        with suppress(FileNotFoundError):  # Somebody else removed a file of it meanwhile.
            shutil.rmtree(folder)


def _folders(root: Path) -> Sequence[Path]:
    return [path for path in root.iterdir() if path.is_dir()] if root.exists() else []


def _read(file: Path) -> tuple[str, Sequence[str]]:
    try:
        kept = json.loads(file.read_text())
        return str(kept["place"]), [str(mark) for mark in kept["marks"] if mark]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return "", ()


def _write(file: Path, kept: dict[str, object]) -> None:
    beside = file.with_suffix(".part")
    with beside.open("w") as writing:
        json.dump(kept, writing)
        writing.flush()
        os.fsync(writing.fileno())
    beside.replace(file)
