"""Schema migrations, run at open and in the process.

A schema is a folder of Alembic revisions named `NNNN_what_changed.py`, whose revision id is the
number. The newest number is the version that the code needs, so that opening a database that has
it costs one SELECT and never imports Alembic.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
import threading
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.storage.engine import Database, domain_error

_ENVIRONMENT = Path(__file__).parent / "alembic_env"
_REVISION_FILE = re.compile(r"^(\d{4})_\w+\.py$")
# Alembic keeps the running migration in module-level proxies (`op`, `context`).
_one_at_a_time = threading.Lock()


def migrate(database: Database, revisions: Path) -> None:
    """Bring the database to the newest of `revisions`, in one transaction.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, the database was made by a newer version.
        As `Database` does.
    """
    known = _known_revisions(revisions)
    with database.read() as connection:
        current = schema_version(connection)
    if current == known[-1]:
        return
    if current is not None and current not in known:
        raise FailedPrecondition(
            f"{database.path.parent.name}/{database.path.name} has schema {current}; this version"
            f" of Mneme knows schemas up to {known[-1]}. It was made by a newer version: start"
            " that one, or restore a backup made by this one",
            reason=Reason.SCHEMA_ERROR,
            metadata={"schema": current, "newest_known_schema": known[-1]},
        )
    with _one_at_a_time:
        if current is None and _is_empty(database):
            _copy(_fresh(revisions), database)
        else:
            _upgrade(database, revisions)


def schema_version(connection: Connection) -> str | None:
    """Return the database's schema version; None for an empty database."""
    try:
        row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    except OperationalError as error:
        if "no such table" in str(error.orig):
            return None
        raise
    return None if row is None else str(row[0])


@lru_cache
def _known_revisions(revisions: Path) -> tuple[str, ...]:
    matches = (_REVISION_FILE.match(file.name) for file in revisions.iterdir())
    known = tuple(sorted(match.group(1) for match in matches if match))
    if not known:
        raise FileNotFoundError(f"{revisions} holds no migrations; the installation is damaged")
    return known


def _is_empty(database: Database) -> bool:
    with database.read() as connection:
        return connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first() is None


@lru_cache
def _fresh(revisions: Path) -> sqlite3.Connection:
    """Return a database in memory that has the newest schema and nothing else.

    To copy it takes a fifth of the time of migrating a new database, of which a server with many
    tenants makes many.
    """
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory() as folder:
        made = Database(Path(folder) / "fresh.db")
        try:
            _upgrade(made, revisions)
            with made.writer.connect() as connection:
                _driver(connection).backup(copy)
        finally:
            made.close()
    return copy


def _copy(source: sqlite3.Connection, database: Database) -> None:
    """Copy all of a database in one transaction."""
    with database.writer.connect() as connection:
        try:
            source.backup(_driver(connection))
        except sqlite3.Error as error:
            raise domain_error(error, database.path, read_only=False) or error from error


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _upgrade(database: Database, revisions: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_ENVIRONMENT))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(revisions))
    with database.writer.connect() as connection:
        # SQLite alters tables by copying them; foreign keys would fire on the way, and they
        # cannot be switched inside a transaction. They are checked before the commit instead.
        dbapi = _driver(connection)
        dbapi.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
                _check_foreign_keys(connection)
        finally:
            dbapi.execute("PRAGMA foreign_keys = ON")


def _check_foreign_keys(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise FailedPrecondition(
            f"the migration would leave table {broken[0]} with rows that refer to missing rows of"
            f" {broken[2]}; nothing was changed",
            reason=Reason.SCHEMA_ERROR,
        )
