"""The states of a tenant in a catalog: they say where it lives."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from mneme_server.engine.store.engine import SqliteDatabase

ACTIVE = "active"
"""Here."""
DELETING = "deleting"
"""Here, but not for long; nobody can open it."""
ARRIVING = "arriving"
"""Elsewhere, and being copied to here; nobody can open what there is."""
GUEST = "guest"
"""Its rows are here, and the catalog of another server says whose they are."""
MOVED = "moved"
"""Elsewhere; its name stays taken here, so that nobody finds what was left."""


def tenants_live_in(catalog: Path) -> bool:
    """Tell whether tenants live where this catalog, a file of SQLite's, says where they do."""
    with closing(SqliteDatabase(catalog)) as database, database.read() as connection:
        states = connection.exec_driver_sql("SELECT DISTINCT state FROM tenants").scalars().all()
    return not {ACTIVE, DELETING}.isdisjoint(states)
