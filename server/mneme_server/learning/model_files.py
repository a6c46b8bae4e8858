"""Exported models, in the tenants' folders."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mneme_server.learning.model import Session

_FOLDER = "models"
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")


class TenantModelFiles:
    """Implements `ModelFiles`: each is a file `tenants/TENANT/models/NUMBER-SESSION.npz`.

    Args:
        data_dir: the server's data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def write(self, tenant_id: str, session: Session, data: bytes) -> str:
        """See `ModelFiles`."""
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
        for path in folder.glob(f"*-{_file_name(session_id)}.npz"):
            path.unlink(missing_ok=True)

    def _path(self, tenant_id: str, session: Session) -> Path:
        name = _file_name(session.id)
        folder = self._data_dir / "tenants" / tenant_id / _FOLDER
        return folder / f"{session.number}-{name}.npz"


def _file_name(session_id: str) -> str:
    return _OTHERS.sub("-", session_id)[:80].strip("-")
