"""This server as one of those that serve from a database: all are equal.

Each follows the feeds of the tenants that it has open, by asking for their newest rows. Work that
must be done once is leased, by tenant: the lease names its server, which says every other second
that it lives, by the database's clock; what the work writes is checked against the lease, in its
transaction. Nothing here holds content, and so it stands outside of row-level security.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from mneme_server.common.fencing import Fence
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.nodes import TRAINING, Erasure, Head
from mneme_server.engine.store.connections import driver_of
from mneme_server.engine.store.postgres.connections import CATALOG, SCHEMA, connect
from mneme_server.engine.store.postgres.database import PostgresDatabase, TenantDatabase
from mneme_server.engine.store.postgres.driver import PsycopgConnection, meaning
from mneme_server.engine.store.postgres.node_schema import Places, serve_beside_others

LIVES_S = 8.0
"""How long a server counts as alive after it said so last."""
_CHANNEL = "mneme_feed"
_FENCE_BITS = 62
_KEPT_S = 3600
_ALIVE = (
    f"SELECT 1 FROM {SCHEMA}.nodes AS n WHERE n.id = l.node AND n.alive_until > clock_timestamp()"
)
_TAKE = (
    "INSERT INTO leases AS l (name, node, fence) VALUES (%s, %s, %s)"
    " ON CONFLICT (name) DO UPDATE SET node = excluded.node, fence = excluded.fence,"
    f" wanted = FALSE WHERE l.node = excluded.node OR NOT EXISTS ({_ALIVE}) RETURNING fence"
)
_OTHERS = f"SELECT id, alive_until > clock_timestamp(), counts FROM {SCHEMA}.nodes WHERE id <> %s"
_RELEASE = "DELETE FROM leases WHERE name = %s AND node = %s AND fence = %s"
_ORPHANS = (
    f"SELECT t.id FROM {CATALOG}.tenants AS t WHERE t.dirty AND t.state = 'active' AND NOT EXISTS"
    f" (SELECT 1 FROM {SCHEMA}.leases AS l WHERE l.name = t.id AND EXISTS ({_ALIVE}))"
)
# Whoever looks first looks after those tenants; a server that is not dead after all writes nothing.
_LEFT = (
    f"DELETE FROM {SCHEMA}.leases AS l WHERE starts_with(l.name, '{TRAINING}')"
    f" AND NOT EXISTS ({_ALIVE}) RETURNING substr(l.name, {len(TRAINING) + 1})"
)


class PostgresNode:
    """Implements `engine.corpus.nodes.Node`. What follows the feed is for one thread; leases for
    any.

    Args:
        url: where the database is; its schema is there.
        database: the same, for transactions of tenants.

    Raises:
        FailedPrecondition: tenants are being moved while no server may serve.
        Unavailable: the database cannot be reached now.
    """

    lives_s = LIVES_S

    def __init__(self, url: str, database: PostgresDatabase) -> None:
        self.id = new_id()
        self.erasures = Places(url, self.id)
        database.place = lambda: self.erasures.place
        self._url = url
        self._database = database
        self._connection: PsycopgConnection | None = None
        self._telling: PsycopgConnection | None = None
        self._tells_as = 0
        self._hears = False
        with self._asking():
            pass

    def hear(self, told: bool) -> None:
        """Be told of others' commits from now on, or not."""
        if self._hears != told:
            with self._asking() as connection:
                connection.execute(f"{'LISTEN' if told else 'UNLISTEN'} {_CHANNEL}")
                self._hears = told

    def listen(self, seconds: float) -> bool:
        """Wait until another server tells of a commit, or of work that it wants done, or the time
        is up; return whether one told."""
        until = time.monotonic() + seconds
        with self._asking() as connection:
            mine = (connection.info.backend_pid, self._tells_as)
            while (left := until - time.monotonic()) >= 0:
                told = list(connection.notifies(timeout=left, stop_after=1))  # All that came.
                if any(one.pid not in mine for one in told):
                    return True
        return False

    def tell(self) -> None:
        """Tell the others that something was committed. For one thread, which is another."""
        try:
            if self._telling is None or self._telling.closed:
                self._telling = connect(self._url)
                self._tells_as = self._telling.info.backend_pid
            self._telling.execute(f"NOTIFY {_CHANNEL}")
        except psycopg.Error as error:
            _close(self._telling)
            self._telling = None
            raise meaning(error) or error from error

    def heads(self, tenants: Collection[str]) -> Sequence[Head]:
        """Return where the tenants' feeds are."""
        with self._asking() as connection:
            rows = connection.execute(
                f"SELECT * FROM {SCHEMA}.feed_heads(%s)", (list(tenants),)
            ).fetchall()
        return [
            Head(tenant_id, Position(number, mark), None if made is None else int(made, 16))
            for tenant_id, number, mark, made in rows
        ]

    def beat(
        self, counts: Mapping[str, Any]
    ) -> tuple[int, Sequence[str], Mapping[str, Mapping[str, Any]]]:
        """Say that this server lives, and what it has counted; return how many others do, those
        that do not any more, and what those have counted that do."""
        with self._asking() as connection:
            connection.execute(
                f"INSERT INTO {SCHEMA}.nodes (id, alive_until, counts)"
                " VALUES (%s, clock_timestamp() + %s * interval '1 s', %s) ON CONFLICT (id)"
                " DO UPDATE SET alive_until = excluded.alive_until, counts = excluded.counts",
                (self.id, LIVES_S, Jsonb(counts)),
            )
            connection.execute(
                f"DELETE FROM {SCHEMA}.nodes WHERE alive_until <"
                f" clock_timestamp() - interval '{_KEPT_S} s'"
            )
            others = connection.execute(_OTHERS, (self.id,)).fetchall()
        gone = [str(node) for node, alive, _ in others if not alive]
        reports = {str(node): counted or {} for node, alive, counted in others if alive}
        return len(reports), gone, reports

    def others(self) -> int:
        """Return how many other servers live. For any thread."""
        with connect(self._url) as connection:
            others = connection.execute(_OTHERS, (self.id,)).fetchall()
        return sum(bool(alive) for _, alive, _ in others)

    def due(self) -> Sequence[Erasure]:
        """Return what this server's place owes."""
        with self._asking() as connection:
            return self.erasures.due(connection)

    def orphans(self) -> Sequence[str]:
        """Return the tenants that have work which nobody who lives holds the lease of, or whose
        learning sessions a server had that is gone."""
        with self._asking() as connection:
            rows = connection.execute(_ORPHANS).fetchall() + connection.execute(_LEFT).fetchall()
        return sorted({str(tenant) for (tenant,) in rows})

    def want(self, tenants: Collection[str]) -> Collection[str]:
        """Have who holds the leases of these tenants look what there is to do; return the tenants
        of which somebody does who lives."""
        with self._asking() as connection:
            rows = connection.execute(
                f"UPDATE {SCHEMA}.leases AS l SET wanted = TRUE WHERE name = ANY(%s)"
                f" AND EXISTS ({_ALIVE}) RETURNING name",
                (list(tenants),),
            ).fetchall()
            if rows:
                connection.execute(f"NOTIFY {_CHANNEL}")
        return {str(tenant) for (tenant,) in rows}

    def wanted(self) -> Sequence[str]:
        """Return the tenants whose leases are held here that others found work for, once."""
        with self._asking() as connection:
            rows = connection.execute(
                f"UPDATE {SCHEMA}.leases SET wanted = FALSE WHERE node = %s AND wanted"
                " RETURNING name",
                (self.id,),
            ).fetchall()
        return [str(tenant) for (tenant,) in rows]

    def take(self, name: str, tenant_id: str) -> Fence | None:
        """Take the lease of a tenant's work of that name, unless another server holds it that
        lives."""
        number = secrets.randbits(_FENCE_BITS)
        taken = self._write(tenant_id, _TAKE, (name, self.id, number)).fetchone()
        return None if taken is None else Fence(name, tenant_id, self.id, number)

    def release(self, fence: Fence) -> None:
        """Let another server take the lease."""
        self._write(fence.tenant_id, _RELEASE, (fence.name, fence.node, fence.number))

    def close(self) -> None:
        """Leave: others take over what is leased to this server at once."""
        with suppress(Exception), self._asking() as connection:
            connection.execute(f"DELETE FROM {SCHEMA}.nodes WHERE id = %s", (self.id,))
        _close(self._connection)
        _close(self._telling)

    def _write(self, tenant_id: str, statement: str, values: tuple[object, ...]) -> Any:
        """Run a statement while the tenant's writers wait: what was written under a lease before
        is there then."""
        with TenantDatabase(self._database, tenant_id).write() as connection:
            try:
                return driver_of(connection).execute(statement, values)
            except psycopg.Error as error:
                raise meaning(error) or error from error

    @contextmanager
    def _asking(self) -> Iterator[PsycopgConnection]:
        try:
            if self._connection is None:
                self._connection = self._connected()
            yield self._connection
        except psycopg.Error as error:
            _close(self._connection)
            self._connection = None
            raise meaning(error) or error from error

    def _connected(self) -> PsycopgConnection:
        connection = connect(self._url)
        self._hears = False
        try:
            serve_beside_others(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _close(connection: PsycopgConnection | None) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()
