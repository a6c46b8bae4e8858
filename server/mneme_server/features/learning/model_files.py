"""Copies of exported models, in the folders of tenants that have one of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mneme_server.features.learning.exporting import file_name, plain_id
from mneme_server.features.learning.model import Session

_FOLDER = "models"


class TenantModelFiles:
    """Implements `ModelFiles`: each is a file `tenants/TENANT/models/NUMBER-SESSION.npz`.

    Args:
        data_dir: the server's data folder.
        is_shared: tells whether a tenant is in a database that tenants share. Its servers have
            disks of their own: a copy on one of them would outlive what others delete.
    """

    def __init__(self, data_dir: Path, is_shared: Callable[[str], bool]) -> None:
        self._data_dir = data_dir
        self._is_shared = is_shared

    def write(self, tenant_id: str, session: Session, data: bytes) -> str:
        """See `ModelFiles`."""
        if self._is_shared(tenant_id):
            return ""
        path = self._path(tenant_id, session)
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        return str(path.relative_to(self._data_dir))

    def remove(self, tenant_id: str, session: Session) -> None:
        """See `ModelFiles`."""
        self._path(tenant_id, session).unlink(missing_ok=True)

    def remove_of(self, tenant_id: str, session_id: str) -> None:
        """Remove the models of every session that is, or was, called so."""
        folder = self._data_dir / "tenants" / tenant_id / _FOLDER
        name = f"{plain_id(session_id)}.npz"
        for path in folder.glob(f"*-{name}"):
            if path.name.partition("-")[2] == name:  # Not those of "other-SESSION".
                path.unlink(missing_ok=True)

    def _path(self, tenant_id: str, session: Session) -> Path:
        return self._data_dir / "tenants" / tenant_id / _FOLDER / file_name(session)
