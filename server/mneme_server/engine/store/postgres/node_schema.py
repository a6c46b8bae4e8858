"""What servers that share a database know of each other, as tables and functions."""

from __future__ import annotations

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.postgres.connecting import ROLE, SCHEMA
from mneme_server.engine.store.postgres.driver import GENERATION_GONE, LEASE_LOST, DriverConnection
from mneme_server.engine.store.postgres.places import make_place_tables

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


def make_node_tables(connection: DriverConnection) -> None:
    """Make them where they are not there yet, in the caller's transaction, as the schema's
    owner."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.{_THERE}",)).fetchone()
    if found is None or found[0] is None:
        for statement in _STATEMENTS:
            connection.execute(statement)
    make_place_tables(connection)


def serve_beside_others(connection: DriverConnection) -> None:
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
