"""What a server on a shared store has on its own disk, within bounds: it can be built again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common.errors import MnemeError
from mneme_server.engine.tenants.opening import COPIES
from mneme_server.engine.tenants.places import remove_copies
from mneme_server.engine.tenants.registry import TenantRegistry

_SHARE = 2
"""Of the disk: what it may take by default, one part of so many."""

_log = structlog.get_logger(__name__)


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
