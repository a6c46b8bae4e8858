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
        shared_bytes: where tenants share a database instead of having one in their folders, returns
            about how many bytes a tenant takes there; else None.
    """

    def __init__(self, root: Path, shared_bytes: Callable[[str], int] | None = None) -> None:
        self._root = root
        self._shared_bytes = shared_bytes

    @property
    def engine(self) -> str:
        """What keeps the tenants: "sqlite" or "postgresql"."""
        return "sqlite" if self._shared_bytes is None else "postgresql"

    def database_of(self, tenant_id: str) -> str:
        """Return where a tenant's database is, below the data folder; empty where it is not."""
        if self._shared_bytes is not None:
            return ""
        return f"tenants/{check_tenant_id(tenant_id)}/{_DATABASE}"

    def sizes(self, tenant_id: str) -> Sizes:
        """Return how much a tenant takes now."""
        folder = self._root / "tenants" / check_tenant_id(tenant_id)
        shared = 0 if self._shared_bytes is None else self._shared_bytes(tenant_id)
        return Sizes(
            database=self.database_bytes(tenant_id) if self._shared_bytes is None else shared,
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
