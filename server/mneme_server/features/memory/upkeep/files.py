"""How much room a tenant takes on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mneme_server.common.identity import check_tenant_id

_DATABASE = "mneme.db"
_INDEXES = ("index", "lexical")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of a tenant's database with its log, of its indexes, and of its whole folder."""

    database: int
    indexes: int
    folder: int


class TenantFolders:
    """Measures the folders of tenants.

    Args:
        root: the server's data folder.
        is_shared: tells whether a tenant is in a database that tenants share, instead of one in its
            folder.
        shared_bytes: returns about how many bytes a tenant takes there.
    """

    def __init__(
        self,
        root: Path,
        is_shared: Callable[[str], bool],
        shared_bytes: Callable[[str], int],
    ) -> None:
        self._root = root
        self._is_shared = is_shared
        self._shared_bytes = shared_bytes

    def engine_of(self, tenant_id: str) -> str:
        """Return what keeps a tenant: "sqlite" or "postgresql"."""
        return "postgresql" if self._is_shared(tenant_id) else "sqlite"

    def database_of(self, tenant_id: str) -> str:
        """Return where a tenant's database is, below the data folder; empty where it is not."""
        if self._is_shared(tenant_id):
            return ""
        return f"tenants/{check_tenant_id(tenant_id)}/{_DATABASE}"

    def sizes(self, tenant_id: str) -> Sizes:
        """Return how much a tenant takes now."""
        folder = self._root / "tenants" / check_tenant_id(tenant_id)
        is_shared = self._is_shared(tenant_id)
        shared = self._shared_bytes(tenant_id) if is_shared else 0
        return Sizes(
            database=shared if is_shared else self.database_bytes(tenant_id),
            indexes=sum(_size((folder / name).rglob("*")) for name in _INDEXES),
            folder=shared + _size(folder.rglob("*")),
        )

    def database_bytes(self, tenant_id: str) -> int:
        """Return how many bytes the database in the folder takes, with its log."""
        return _size((self._root / "tenants" / check_tenant_id(tenant_id)).glob(f"{_DATABASE}*"))


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # Snapshots and logs come and go.
            continue
    return total
