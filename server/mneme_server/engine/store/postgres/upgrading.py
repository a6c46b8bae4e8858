"""Bringing a schema to this version's revisions, while servers of the version before serve from it.

A revision adds what those can do without: tables, columns that have a default. One that takes away
what they need says so (`phase = "contract"`, see `engine.store.migrate`), and comes a version
later. It is run once no connection of a server that does not know it is left: each holds a lock,
shared; and each asks, as it is opened, whether the schema was contracted beyond what it knows.

All of an upgrade is one transaction. It asks for all tables at once, and again when somebody is in
the way: who waits for a lock holds up all who come after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from psycopg import sql
from sqlalchemy import Connection

from mneme_server.common.errors import FailedPrecondition, Reason, Unavailable
from mneme_server.engine.store import driver
from mneme_server.engine.store.migrate import (
    newest_versions,
    require_known,
    revisions_of,
    run_revisions,
)
from mneme_server.engine.store.postgres.connecting import engine_of, in_use
from mneme_server.engine.store.postgres.pool import Begin, Pool

_TRIES_FOR_S = 60.0
_PATIENCE_S = 15.0
"""How long a server that was stopped may still be connected."""
_LOOK_S = 0.2
_LOCKED_FOR = "3s"
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '60s';"
    " SELECT pg_advisory_xact_lock(hashtextextended({}, 0)); SET LOCAL lock_timeout = {}"
)
_DATABASE = "the database"
_REVISIONS = "CREATE TABLE revisions (id TEXT PRIMARY KEY, contracts BOOLEAN NOT NULL)"

Steps = Callable[[Connection, Callable[[], None]], None]
"""Runs what it is given, the revisions, and does what belongs to it before and after."""


def upgrade(
    url: str,
    schema: str,
    folders: Sequence[Path],
    *,
    make: Callable[[Connection], None] | None = None,
    around: Steps = lambda _connection, run: run(),
) -> None:
    """Bring a schema to the newest revisions of these folders, all at once or not at all.

    Args:
        url: where the database is; its user owns the schema.
        schema: its name. It is there, maybe empty.
        folders: the folders of revisions, the trunk first.
        make: makes an empty one, instead of all revisions; `revisions` are noted.
        around: runs the revisions that are missing in one that is not empty.

    Raises:
        Unavailable: the database cannot be reached now, or others are in the way for too long.
        FailedPrecondition: SCHEMA_ERROR, a newer version made it and contracted it, a build from
            before the first release made it, or servers serve from it that cannot serve from what
            this one would make of it.
    """
    pool = Pool(engine_of(url, schema), 1)
    begin = Begin("", sql.SQL(_BEGIN).format(f"mneme: {schema} upgrade", _LOCKED_FOR))
    until = time.monotonic() + _TRIES_FOR_S

    def bring(connection: Connection) -> None:
        _bring(connection, schema, folders, make, around)

    try:
        while not _tried(pool, begin, until, bring):
            pass
    finally:
        pool.close()


def _tried(pool: Pool, begin: Begin, until: float, bring: Callable[[Connection], None]) -> bool:
    """Do it in one transaction; tell whether it was done. It was not if somebody held a lock that
    it needs, or a deadlock had to end, and there is time left to try again."""
    try:
        with pool.transaction(begin) as connection:
            bring(connection)
            driver.commit(connection)
    except Unavailable as error:
        if error.reason is not Reason.TRANSACTION_FAILED or time.monotonic() > until:
            raise
        return False
    return True


def _bring(
    connection: Connection,
    schema: str,
    folders: Sequence[Path],
    make: Callable[[Connection], None] | None,
    around: Steps,
) -> None:
    known = revisions_of(folders)
    has = _revisions(connection, schema, folders)
    ahead, missing = has.keys() - known.keys(), known.keys() - has.keys()
    if ahead and (missing or any(has[one] for one in ahead)):
        require_known(ahead, folders, _DATABASE)
    if not missing:
        return
    if not has and make is not None:
        make(connection)
        _note_versions(connection, newest_versions(*folders))
    else:
        if has and any(known[one] for one in missing):
            _require_nobody(connection, schema)
        around(connection, lambda: run_revisions(connection, folders))
    _note(connection, missing, known)


def _revisions(connection: Connection, schema: str, folders: Sequence[Path]) -> dict[str, bool]:
    """Return the revisions that a schema has, each with whether it contracts."""
    if not _there(connection, f"{schema}.revisions"):
        if _there(connection, f"{schema}.alembic_version"):  # Older builds noted nothing else.
            heads = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
            require_known(heads.all(), folders, _DATABASE)
        connection.exec_driver_sql(_REVISIONS)
    found = connection.exec_driver_sql("SELECT id, contracts FROM revisions").all()
    return {str(revision): bool(contracts) for revision, contracts in found}


def _note(connection: Connection, revisions: Iterable[str], contracts: Mapping[str, bool]) -> None:
    for one in sorted(revisions):
        values = (one, contracts[one])
        connection.exec_driver_sql("INSERT INTO revisions VALUES (%s, %s)", values)


def _note_versions(connection: Connection, versions: Sequence[str]) -> None:
    """Note what Alembic would have, had it run the revisions."""
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    for version in versions:
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (%s)", (version,))


def _there(connection: Connection, table: str) -> bool:
    found = connection.exec_driver_sql("SELECT to_regclass(%s) IS NOT NULL", (table,))
    return bool(found.scalar())


def _require_nobody(connection: Connection, schema: str) -> None:
    """Keep servers away until the transaction ends; none may be connected.

    It does not wait for the lock in PostgreSQL's line, in which servers would wait behind it.
    """
    until = time.monotonic() + _PATIENCE_S
    lock = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    while not connection.exec_driver_sql(lock, (in_use(schema),)).scalar():
        if time.monotonic() > until:
            raise FailedPrecondition(
                "servers of an older version serve from the database, and could not any more once"
                " its schema is that of this version: stop them, then start this one",
                reason=Reason.SCHEMA_ERROR,
            )
        time.sleep(_LOOK_S)
