"""The tables and functions of servers that share a database: their leases, folders and erasures.

Each data folder has a row, for good; what is erased has a row for each folder, which goes once
nothing is left of it there. Nothing here holds content, and so it stands outside of row-level
security.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.corpus.nodes import WHOLE, Erasure, OwingPlaces
from mneme_server.engine.store.postgres.connections import ROLE, SCHEMA, connect
from mneme_server.engine.store.postgres.driver import (
    GENERATION_GONE,
    LEASE_LOST,
    UNSETTLED,
    PsycopgConnection,
    meaning,
)

_THERE = "leases"
SERVING = "mneme: node"
"""The lock that each server holds, shared; whoever moves tenants while none serves has it alone."""
_STATEMENTS = (
    f"CREATE TABLE {SCHEMA}.nodes (id TEXT PRIMARY KEY, alive_until TIMESTAMPTZ NOT NULL,"
    " counts JSONB)",
    f'CREATE TABLE {SCHEMA}.leases (name TEXT COLLATE "C" PRIMARY KEY, node TEXT NOT NULL,'
    " fence BIGINT NOT NULL, wanted BOOLEAN NOT NULL DEFAULT FALSE)",
    f"CREATE INDEX leases_wanted ON {SCHEMA}.leases (node) WHERE wanted",
    f"GRANT SELECT ON {SCHEMA}.nodes TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON {SCHEMA}.leases TO {ROLE}",
    # In the transaction of what it guards. Who takes a lease over has the lock of the tenant's
    # writers; where that does not guard it, the lease stays as it is until the transaction ends.
    f"CREATE FUNCTION {SCHEMA}.require_lease"
    "(which TEXT, of_node TEXT, of_fence BIGINT, hold BOOLEAN)"
    " RETURNS VOID VOLATILE LANGUAGE plpgsql AS $$ BEGIN IF hold THEN"
    f" PERFORM 1 FROM {SCHEMA}.leases AS l"
    " WHERE l.name = which AND l.node = of_node AND l.fence = of_fence FOR SHARE;"
    f" ELSE PERFORM 1 FROM {SCHEMA}.leases AS l"
    " WHERE l.name = which AND l.node = of_node AND l.fence = of_fence; END IF;"
    f" IF NOT FOUND THEN RAISE EXCEPTION 'lost' USING ERRCODE = '{LEASE_LOST}'; END IF; END $$",
    f"CREATE FUNCTION {SCHEMA}.require_generation(which TEXT) RETURNS VOID"
    " STABLE LANGUAGE plpgsql AS $$ BEGIN"
    f" IF NOT EXISTS (SELECT 1 FROM {SCHEMA}.settings AS s WHERE"
    " s.tenant_id = current_setting('mneme.tenant') AND s.key = 'generation'"
    f" AND s.value = which) THEN RAISE EXCEPTION 'gone' USING ERRCODE = '{GENERATION_GONE}';"
    " END IF; END $$",
    # One tenant after the other, each by the key of its rows: row-level security holds here, too.
    f"CREATE FUNCTION {SCHEMA}.feed_heads(tenants TEXT[])"
    " RETURNS TABLE (of_tenant TEXT, newest BIGINT, newest_mark BIGINT, made TEXT)"
    " VOLATILE LANGUAGE plpgsql AS $$ BEGIN"
    " FOREACH of_tenant IN ARRAY tenants LOOP"
    " PERFORM set_config('mneme.tenant', of_tenant, true);"
    f" SELECT f.number, f.mark INTO newest, newest_mark FROM {SCHEMA}.feed AS f"
    " WHERE f.tenant_id = of_tenant ORDER BY f.number DESC LIMIT 1;"
    " IF NOT FOUND THEN newest := 0; newest_mark := 0; END IF;"
    f" SELECT s.value INTO made FROM {SCHEMA}.settings AS s"
    " WHERE s.tenant_id = of_tenant AND s.key = 'generation';"
    " RETURN NEXT; END LOOP; END $$",
)
_FOLDER_STATEMENTS = (
    f"CREATE TABLE {SCHEMA}.places (id TEXT PRIMARY KEY, name TEXT NOT NULL, mark TEXT NOT NULL,"
    " node TEXT NOT NULL)",
    f'CREATE TABLE {SCHEMA}.erasures (tenant_id TEXT COLLATE "C", id TEXT COLLATE "C",'
    f" place TEXT REFERENCES {SCHEMA}.places ON DELETE CASCADE,"
    " settled BOOLEAN NOT NULL DEFAULT FALSE, number BIGINT,"
    " passed BOOLEAN NOT NULL DEFAULT FALSE, PRIMARY KEY (tenant_id, id, place))",
    f"CREATE INDEX erasures_of_place ON {SCHEMA}.erasures (place)",
    f"GRANT SELECT ON {SCHEMA}.erasures TO {ROLE}",
    # Once the tenant's writers wait for the transaction: what was written before is erased, too.
    f"CREATE FUNCTION {SCHEMA}.require_settled(of_place TEXT) RETURNS VOID"
    " STABLE LANGUAGE plpgsql AS $$ BEGIN"
    f" IF EXISTS (SELECT 1 FROM {SCHEMA}.erasures AS e WHERE"
    " e.tenant_id = current_setting('mneme.tenant') AND e.place = of_place"
    f" AND e.passed AND NOT e.settled) THEN RAISE EXCEPTION 'late' USING ERRCODE = '{UNSETTLED}';"
    " END IF; END $$",
)
_LIVES = (
    f"EXISTS (SELECT 1 FROM {SCHEMA}.nodes AS n WHERE n.id = p.node"
    " AND n.alive_until > clock_timestamp())"
)
_AWAITED = (
    f"SELECT p.name, e.settled, {_LIVES} FROM {SCHEMA}.erasures AS e"
    f" JOIN {SCHEMA}.places AS p ON p.id = e.place WHERE e.tenant_id = %s AND e.id = %s"
    " ORDER BY p.name"
)
_DUE = f"SELECT tenant_id, id, settled, number FROM {SCHEMA}.erasures WHERE place = %s"


def make_node_tables(connection: PsycopgConnection) -> None:
    """Make them where they are not there yet, in the caller's transaction, as the schema's
    owner."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.{_THERE}",)).fetchone()
    if found is None or found[0] is None:
        for statement in _STATEMENTS:
            connection.execute(statement)
    make_place_tables(connection)


def serve_beside_others(connection: PsycopgConnection) -> None:
    """See that nobody moves tenants who needs the database for himself, and let nobody begin while
    the connection lives.

    Raises:
        FailedPrecondition: somebody does.
    """
    row = connection.execute(
        "SELECT pg_try_advisory_lock_shared(hashtextextended(%s, 0))", (SERVING,)
    ).fetchone()
    if not row or not row[0]:
        raise FailedPrecondition(
            "tenants are being moved to or from the database of MNEME_DATABASE_URL, from which no"
            " server may serve meanwhile: start once `mneme-server migrate` has ended",
            reason=Reason.INITIALIZATION_FAILED,
        )


def make_place_tables(connection: PsycopgConnection) -> None:
    """Make them where they are not there yet, in the caller's transaction, as the schema's
    owner."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.erasures",)).fetchone()
    if found is None or found[0] is None:
        for statement in _FOLDER_STATEMENTS:
            connection.execute(statement)


class Places:
    """Implements `engine.corpus.nodes.Erasures`. Each call has a connection of its own while it
    takes: they are seldom.

    Args:
        url: where the database is.
        node: what names this server while its process lives.
    """

    def __init__(self, url: str, node: str) -> None:
        self._url = url
        self._node = node
        self._place = ""

    @property
    def place(self) -> str:
        """The place of this server; empty before it has entered."""
        return self._place

    def mark_of(self, place: str) -> tuple[str, bool] | None:
        """See `Erasures`."""
        with self._asking() as connection:
            row = connection.execute(
                f"SELECT p.mark, {_LIVES} FROM {SCHEMA}.places AS p WHERE p.id = %s", (place,)
            ).fetchone()
        return None if row is None else (str(row[0]), bool(row[1]))

    def is_first(self) -> bool:
        """See `Erasures`."""
        with self._asking() as connection:
            return connection.execute(f"SELECT 1 FROM {SCHEMA}.places LIMIT 1").fetchone() is None

    def enter(self, place: str, name: str, mark: str) -> None:
        """See `Erasures`."""
        with self._asking() as connection:
            connection.execute(
                f"INSERT INTO {SCHEMA}.places VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE"
                " SET name = excluded.name, mark = excluded.mark, node = excluded.node",
                (place, name, mark, self._node),
            )
        self._place = place

    def ask(self, tenant_id: str, erasure_id: str) -> None:
        """See `Erasures`. A deletion takes the place of what else is owed of the tenant."""
        whole = erasure_id == WHOLE
        with self._asking() as connection, connection.transaction():
            if whole:
                connection.execute(
                    f"DELETE FROM {SCHEMA}.erasures WHERE tenant_id = %s", (tenant_id,)
                )
            connection.execute(
                f"INSERT INTO {SCHEMA}.erasures SELECT %s, %s, id, %s, %s FROM {SCHEMA}.places"
                " WHERE id <> %s ON CONFLICT DO NOTHING",
                (tenant_id, erasure_id, whole, 0 if whole else None, self._place),
            )

    def erased(self, tenant_id: str, erasure_id: str, number: int) -> None:
        """See `Erasures`."""
        with self._asking() as connection:
            connection.execute(
                f"UPDATE {SCHEMA}.erasures SET number = %s WHERE tenant_id = %s AND id = %s",
                (number, tenant_id, erasure_id),
            )

    def awaited(self, tenant_id: str, erasure_id: str) -> OwingPlaces:
        """See `Erasures`."""
        with self._asking() as connection:
            rows = connection.execute(_AWAITED, (tenant_id, erasure_id)).fetchall()
        return OwingPlaces(
            unsettled=[str(name) for name, settled, lives in rows if lives and not settled],
            living=[str(name) for name, _, lives in rows if lives],
            absent=[str(name) for name, _, lives in rows if not lives],
        )

    def go_on(self, tenant_id: str, erasure_id: str) -> None:
        """See `Erasures`."""
        with self._asking() as connection:
            connection.execute(
                f"UPDATE {SCHEMA}.erasures SET passed = TRUE"
                " WHERE tenant_id = %s AND id = %s AND NOT settled",
                (tenant_id, erasure_id),
            )

    def settle(self, owed: Erasure) -> None:
        """See `Erasures`."""
        self._change("UPDATE {} SET settled = TRUE", owed)

    def done(self, owed: Erasure) -> None:
        """See `Erasures`."""
        self._change("DELETE FROM {}", owed)

    def due(self, connection: PsycopgConnection) -> Sequence[Erasure]:
        """Return what this server's place owes, by a connection that is there."""
        return [Erasure(*row) for row in connection.execute(_DUE, (self._place,)).fetchall()]

    def _change(self, statement: str, owed: Erasure) -> None:
        with self._asking() as connection:
            connection.execute(
                statement.format(f"{SCHEMA}.erasures")
                + " WHERE tenant_id = %s AND id = %s AND place = %s",
                (owed.tenant_id, owed.id, self._place),
            )

    @contextmanager
    def _asking(self) -> Iterator[PsycopgConnection]:
        try:
            with connect(self._url) as connection:
                yield connection
        except psycopg.Error as error:
            raise meaning(error) or error from error


def places_of(url: str) -> Sequence[tuple[str, str, bool, int]]:
    """Return the places that are known: id, name, whether a server lives that has it, and how many
    erasures it owes.

    Raises:
        Unavailable: the database cannot be reached now.
    """
    with connect(url) as connection:
        rows = connection.execute(
            f"SELECT p.id, p.name, {_LIVES}, (SELECT count(*) FROM {SCHEMA}.erasures AS e"
            f" WHERE e.place = p.id) FROM {SCHEMA}.places AS p ORDER BY p.name, p.id"
        ).fetchall()
    return [(str(place), str(name), bool(lives), int(owes)) for place, name, lives, owes in rows]


def forget_place(url: str, place: str) -> bool:
    """Know no more of a place whose disk is gone, and of what it owes; tell whether it was known,
    and no server lives that has it."""
    with connect(url) as connection:
        found = connection.execute(
            f"DELETE FROM {SCHEMA}.places AS p WHERE p.id = %s AND NOT {_LIVES} RETURNING id",
            (place,),
        ).fetchone()
    return found is not None
