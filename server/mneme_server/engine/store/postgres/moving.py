"""What has to hold of a database that tenants are moved to or from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.migrate import revisions_of
from mneme_server.engine.store.postgres.connecting import CATALOG, SCHEMA, connect
from mneme_server.engine.store.postgres.node_schema import SERVING


@contextmanager
def held_alone(url: str) -> Iterator[None]:
    """Let no server serve from the database for the block, whose schemas are there.

    Raises:
        FailedPrecondition: one does.
    """
    with connect(url) as connection:
        lock = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        row = connection.execute(lock, (SERVING,)).fetchone()
        if not row or not row[0]:
            raise FailedPrecondition(
                "a server serves from the database, or tenants are being moved; stop it first",
                reason=Reason.INITIALIZATION_FAILED,
            )
        yield


def require_this_version(url: str, tenants: Sequence[Path], catalog: Sequence[Path]) -> None:
    """See that the database has no tables or columns that this version does not know, and would
    leave behind: it may serve from what a newer version expanded.

    Args:
        url: where it is; its schemas have been brought to this version.
        tenants: the folders of revisions of the tenants' tables.
        catalog: those of the catalog's.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, it has.
    """
    with connect(url) as connection:
        for schema, folders in ((SCHEMA, tenants), (CATALOG, catalog)):
            query = sql.SQL("SELECT id FROM {}.revisions").format(sql.Identifier(schema))
            ahead = {str(one) for (one,) in connection.execute(query)} - revisions_of(
                folders
            ).keys()
            if ahead:
                raise FailedPrecondition(
                    f"a newer version made {', '.join(sorted(ahead))} of the database's schema:"
                    " move tenants with that version",
                    reason=Reason.SCHEMA_ERROR,
                )
