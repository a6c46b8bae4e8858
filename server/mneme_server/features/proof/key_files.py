"""Private keys in files beside the catalog, readable by the server's user alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class KeyFiles:
    """Implements `sealed_keys.KeyPlaces`: `<folder>/<tenant>/<number>.pem`, mode 0600.

    Args:
        folder: made when the first key is.
    """

    put_back = "keys/ of the data folder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, tenant_id: str, number: int, pem: bytes) -> bytes:
        """Write a key's file, unless there is one: a server that was stopped before the
        catalog knew its key finds it again, and a catalog that lost its row destroys none."""
        try:
            return self.read(tenant_id, number)
        except LookupError:
            self.replace(tenant_id, number, pem)
        return pem

    def replace(self, tenant_id: str, number: int, pem: bytes) -> None:
        """See `KeyPlaces`."""
        path = self._path(tenant_id, number)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        for folder in (path.parent, path.parent.parent):
            _sync(folder)

    def read(self, tenant_id: str, number: int) -> bytes:
        """See `KeyPlaces`."""
        try:
            return self._path(tenant_id, number).read_bytes()
        except OSError as error:
            raise LookupError(error.strerror) from None

    def remove(self, tenant_id: str, number: int | None) -> None:
        """Remove a key's file, or the tenant's folder."""
        if number is None:
            shutil.rmtree(self._folder / tenant_id, ignore_errors=True)
        else:
            self._path(tenant_id, number).unlink(missing_ok=True)

    def _path(self, tenant_id: str, number: int) -> Path:
        return self._folder / tenant_id / f"{number}.pem"


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
