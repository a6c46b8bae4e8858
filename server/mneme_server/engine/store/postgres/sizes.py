"""How many bytes a tenant takes in tables that it shares: reckoned, as counting reads all rows."""

from __future__ import annotations

from typing import Any, cast

from psycopg import sql
from sqlalchemy import Connection

from mneme_server.engine.store.driver import driver_of
from mneme_server.engine.store.postgres.tenancy import tables_of_tenants

_SAMPLE = 1000
"""Rows of a table that are measured; a tenant that has fewer is measured as a whole."""


def bytes_of(connection: Connection, tenant_id: str) -> int:
    """Return about how many bytes the rows of the transaction's tenant take, without their indexes:
    what some rows take, times how many there are by what PostgreSQL knows of the tables."""
    ask = cast(Any, driver_of(connection)).execute
    tables = tables_of_tenants(connection)
    whose = sql.Literal(tenant_id)
    samples = [
        sql.SQL(
            "SELECT {}, count(*), coalesce(sum(pg_column_size(t.*)), 0)"
            " FROM (SELECT * FROM {} WHERE tenant_id = {} LIMIT {}) AS t"
        ).format(name, sql.Identifier(name), whose, _SAMPLE)
        for name in tables
    ]
    size = 0.0
    for name, rows, taken in ask(sql.SQL(" UNION ALL ").join(samples)).fetchall():
        size += taken
        if rows == _SAMPLE:
            explained = ask(
                sql.SQL("EXPLAIN (FORMAT JSON) SELECT 1 FROM {} WHERE tenant_id = {}").format(
                    sql.Identifier(name), whose
                )
            ).fetchone()
            all_rows = explained[0][0]["Plan"]["Plan Rows"]
            size += taken * max(0.0, all_rows / rows - 1)
    return round(size)
