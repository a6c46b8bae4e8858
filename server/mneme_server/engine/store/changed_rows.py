"""Which rows of a tenant change, from one moment on: what a copy has to catch up with.

Triggers note the keys of all rows that a transaction inserts, updates or deletes, in that
transaction, whatever wrote them. They are there only while the tenant is copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection

from mneme_server.engine.store.driver import sqlite_of
from mneme_server.engine.store.schema import metadata

Keys = Mapping[str, Sequence[tuple[object, ...]]]
"""Keys of rows, without the tenant's id, by table."""

_NOTES = "changed_rows"
_TRIGGER = "note_changed"


class SqlChangedRows:
    """The notes in one transaction on SQLite, where a tenant has a file of its own."""

    def __init__(self, connection: Connection) -> None:
        self._driver = sqlite_of(connection)

    def begin(self) -> None:
        """Note from now on what changes, and forget what was noted. In a transaction that
        writes."""
        self.end()
        self._driver.execute(
            f"CREATE TABLE {_NOTES} (number INTEGER PRIMARY KEY AUTOINCREMENT,"
            " name TEXT NOT NULL, row_key TEXT NOT NULL)"
        )
        for statement in _triggers():
            self._driver.execute(statement)

    def end(self) -> None:
        """Note nothing any more, and overwrite what was noted: keys may be names. In a transaction
        that writes; there may be nothing to end."""
        self._driver.execute("PRAGMA secure_delete = ON")
        found = self._driver.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE ?",
            (f"{_TRIGGER}_%",),
        ).fetchall()
        for (name,) in found:
            self._driver.execute(f"DROP TRIGGER {name}")
        self._driver.execute(f"DROP TABLE IF EXISTS {_NOTES}")

    def there(self) -> bool:
        """Tell whether anything is noted."""
        found = self._driver.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = ?", (_NOTES,)
        ).fetchone()
        return bool(found[0])

    def after(self, number: int) -> tuple[int, Keys]:
        """Return the last note, and the keys of the rows that were noted after one; 0: all."""
        found: dict[str, dict[tuple[object, ...], None]] = {}
        last = number
        rows = self._driver.execute(
            f"SELECT number, name, row_key FROM {_NOTES} WHERE number > ? ORDER BY number",
            (number,),
        )
        for noted, name, key in rows:
            found.setdefault(name, {})[tuple(json.loads(key))] = None
            last = noted
        return last, {name: list(keys) for name, keys in found.items()}


def key_columns(table: str) -> list[str]:
    """Return the columns that name a row of a table among its tenant's."""
    return [one.name for one in metadata.tables[table].primary_key if one.name != "tenant_id"]


def _triggers() -> Iterator[str]:
    for table in metadata.sorted_tables:
        for event, rows in (("INSERT", ["NEW"]), ("UPDATE", ["OLD", "NEW"]), ("DELETE", ["OLD"])):
            notes = " ".join(
                f"INSERT INTO {_NOTES} (name, row_key) VALUES ('{table.name}', json_array("
                + ", ".join(f'{row}."{column}"' for column in key_columns(table.name))
                + "));"
                for row in rows
            )
            yield (
                f"CREATE TRIGGER {_TRIGGER}_{table.name}_{event.lower()} AFTER {event}"
                f' ON "{table.name}" BEGIN {notes} END'
            )
