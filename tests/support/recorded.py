"""Databases that released versions wrote, and those of builds from before the first release."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "fixtures" / "recorded"
"""What `tests/fixtures/make_recorded.py` wrote, once for each released schema."""
VERSIONS = sorted(file.stem.partition("-")[2] for file in RECORDED.glob("tenant-*.sql"))
"""The released schemas, by the newest revision of their trunk."""
SECRET = "mn_the-key-of-the-recorded-tenant"
"""The operator's key in them."""
BEFORE_THE_FIRST = {
    "of one revision": ["0001"],
    "of the last build": ["0005", "alerts_0002", "events_0002", "patterns_0001", "proof_0003"],
    "of a catalog": ["0004", "alertdue_0001", "operations_0002"],
}
"""The versions that databases of builds from before the first release say of themselves."""


def recorded(name: str, version: str) -> str:
    """Return the statements that make a recorded database: "tenant", "catalog" or "postgres"."""
    return (RECORDED / f"{name}-{version}.sql").read_text()


def restore(name: str, version: str, path: Path) -> Path:
    """Make the file of a recorded database; return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(recorded(name, version))
    return path


def restore_folder(version: str, data: Path) -> Path:
    """Make a recorded data folder; return the file of its tenant's database."""
    restore("catalog", version, data / "catalog.db")
    keys = json.loads((RECORDED / f"keys-{version}.json").read_text())
    for name, content in keys.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(base64.b64decode(content))
    return restore("tenant", version, data / "tenants/default/mneme.db")


def say_version(path: Path, versions: list[str]) -> None:
    """Have a database's file say that it has these versions."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
        rows = [(one,) for one in versions]
        connection.executemany("INSERT INTO alembic_version VALUES (?)", rows)
