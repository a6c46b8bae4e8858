"""Schema migrations, run at open and in the process.

A schema is a folder of Alembic revisions named `NNNN_what_changed.py`, whose revision id is the
number. The newest number is the version that the code needs, so that opening a database that has
it costs one SELECT and never imports Alembic. Beside the trunk there may be branches, folders of
their own whose revisions are called BRANCH_NNNN, e.g. in a file `notes_0001_first.py`; a database
then has a version of each.

The first revision of a folder makes the tables of the first release, its baseline: its number is
100, because builds from before that release, whose databases are refused, had smaller ones.

A new database is made at once, of the SQL that `make generate` writes beside the trunk: what all
revisions make. Alembic runs where a database grows, and where the capabilities are not those of
that file.

A revision adds what servers of the version before can do without, unless it says
`phase = "contract"`. Where many servers share a database, those are held back until none of the
version before serves from it; see `postgres.schema.upgrade`.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
import threading
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.engine import (
    SHRINK_IN_PLACE,
    NotInSchema,
    SqliteDatabase,
    domain_error,
)

NEWEST = "newest.sql"
"""In a trunk's folder: what makes a database that has the newest of all revisions."""

_ENVIRONMENT = Path(__file__).parent / "alembic_env"
_REVISION_FILE = re.compile(r"^((?:[a-z]+_)?\d{4})_\w+\.py$")
_DIGITS = 4
_DEPENDS_ON = re.compile(r"""^depends_on = ["'](\w+)["']$""", re.MULTILINE)
_CONTRACTS = re.compile(r"""^phase = ["']contract["']$""", re.MULTILINE)
# Alembic keeps the running migration in module-level proxies (`op`, `context`).
_one_at_a_time = threading.RLock()


def migrate(database: SqliteDatabase, trunk: Path, *branches: Path) -> None:
    """Bring the database to the newest revisions of `trunk` and of each of `branches`, in one
    transaction.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, the database was made by a newer version, by one that had
            another capability, or by a build from before the first release.
        As `SqliteDatabase` does.
    """
    folders = (trunk, *branches)
    newest = set(newest_versions(*folders))
    with database.read() as connection:
        current = schema_versions(connection)
    if current == newest:
        return
    require_known(current, folders, f"{database.path.parent.name}/{database.path.name}")
    with _one_at_a_time:
        if not current and _is_empty(database):
            _copy(_fresh(folders), database)
        else:
            _upgrade(database, folders)


def require_known(current: Collection[str], folders: Sequence[Path], database: str) -> None:
    """Check that this version knows the versions that a database has.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, it does not.
    """
    known = [_known_revisions(folder) for folder in folders]
    unknown = sorted(set(current).difference(*known))
    if not unknown:
        return
    if any(_is_below(one, revisions[0]) for one in unknown for revisions in known):
        why = (
            f"{database} was made by a build from before the first release, whose data this version"
            " does not read: export what it holds with that build and import it here, or begin with"
            " a new data folder or database"
        )
    else:
        why = (
            f"{database} has schema {', '.join(unknown)};"
            f" this version of Mneme knows schemas up to"
            f" {', '.join(revisions[-1] for revisions in known)}. It was made by a newer version:"
            " start that one, or restore a backup made by this one"
        )
    raise FailedPrecondition(
        why,
        reason=Reason.SCHEMA_ERROR,
        metadata={"schema": ",".join(unknown), "newest_known_schema": known[0][-1]},
    )


def _is_below(revision: str, first: str) -> bool:
    """Tell whether a revision is of the folder that begins with `first`, and older than that."""
    return revision[:-_DIGITS] == first[:-_DIGITS] and revision < first


def newest_versions(*folders: Path) -> list[str]:
    """Return the versions that a database has which is brought to the newest of these folders."""
    # Alembic keeps no row of a revision that another one depends on.
    newest = {_known_revisions(folder)[-1] for folder in folders}
    return sorted(newest.difference(*map(_depended_on, folders)))


def revisions_of(folders: Iterable[Path]) -> dict[str, bool]:
    """Return all revisions of these folders, each with whether it contracts: whether servers that
    do not know it cannot serve any more once it was run."""
    return {
        revision: _CONTRACTS.search(file.read_text()) is not None
        for folder in folders
        for revision, file in _files(folder).items()
    }


def schema_versions(connection: Connection) -> frozenset[str]:
    """Return the database's schema version, and that of each branch; none for an empty database."""
    try:
        rows = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
    except NotInSchema:
        return frozenset()
    return frozenset(str(version) for (version,) in rows)


@lru_cache
def _known_revisions(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(_files(folder)))


@lru_cache
def _files(folder: Path) -> dict[str, Path]:
    """Return a folder's revisions, each with the file that it is in."""
    matches = ((_REVISION_FILE.match(file.name), file) for file in folder.iterdir())
    found = {match.group(1): file for match, file in matches if match}
    if not found:
        raise FileNotFoundError(f"{folder} holds no migrations; the installation is damaged")
    return found


@lru_cache
def _depended_on(folder: Path) -> frozenset[str]:
    """Return the revisions of other folders that those of this one depend on."""
    found = (_DEPENDS_ON.search(file.read_text()) for file in _files(folder).values())
    return frozenset(match.group(1) for match in found if match)


def _is_empty(database: SqliteDatabase) -> bool:
    with database.read() as connection:
        return connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first() is None


@lru_cache
def _fresh(folders: tuple[Path, ...]) -> sqlite3.Connection:
    """Return a database in memory that has the newest schema and nothing else.

    To copy it takes a fifth of the time of migrating a new database, of which a server with many
    tenants makes many. The first takes 4 milliseconds as it is written down, and 200 by revisions.
    """
    file = folders[0] / NEWEST
    if file.exists():
        made = made_of(file.read_text("utf-8"))
        if _versions_in(made) == newest_versions(*folders):
            return made
        made.close()  # Of other capabilities than this server has.
    return made_by_revisions(folders)


def made_of(sql: str) -> sqlite3.Connection:
    """Return a database in memory that this makes; see `as_sql`."""
    made = sqlite3.connect(":memory:", check_same_thread=False)
    made.execute(SHRINK_IN_PLACE)  # As every new one, before it has tables.
    made.executescript(sql)
    return made


def as_sql(made: sqlite3.Connection) -> str:
    """Return what makes a database like this one, of the same revisions always the same."""
    lines = list(made.iterdump())
    rows = [line for line in lines if line.startswith('INSERT INTO "alembic_version"')]
    first = lines.index(rows[0])
    lines[first : first + len(rows)] = sorted(rows)  # Alembic leaves them in no order.
    return "\n".join([*lines, ""])


def made_by_revisions(folders: tuple[Path, ...]) -> sqlite3.Connection:
    """Return a database in memory that all revisions of these folders have made."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory() as folder:
        made = SqliteDatabase(Path(folder) / "fresh.db")
        try:
            _upgrade(made, folders)
            with made.writer.connect() as connection:
                _driver(connection).backup(copy)
        finally:
            made.close()
    return copy


def _versions_in(made: sqlite3.Connection) -> list[str]:
    rows = made.execute("SELECT version_num FROM alembic_version ORDER BY version_num")
    return [str(version) for (version,) in rows]


def _copy(source: sqlite3.Connection, database: SqliteDatabase) -> None:
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


def run_revisions(connection: Connection, folders: Sequence[Path]) -> None:
    """Run the revisions that a database lacks, in the transaction that the connection is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_ENVIRONMENT))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, folders)))
    config.attributes["connection"] = connection
    with _one_at_a_time:
        command.upgrade(config, "heads")


def _upgrade(database: SqliteDatabase, folders: tuple[Path, ...]) -> None:
    with database.writer.connect() as connection:
        # SQLite alters tables by copying them; foreign keys would fire on the way, and they
        # cannot be switched inside a transaction. They are checked before the commit instead.
        dbapi = _driver(connection)
        dbapi.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                run_revisions(connection, folders)
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
