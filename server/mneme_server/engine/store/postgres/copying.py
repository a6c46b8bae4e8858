"""Rows that PostgreSQL sends by COPY: one by one as they are found, and in a third of its time
where they are large."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Copy
from sqlalchemy import Connection, Select
from sqlalchemy.sql.compiler import SQLCompiler

from mneme_server.engine.store.binding import TenantNotBound, tenant_parameters
from mneme_server.engine.store.postgres.driver import postgres_of
from mneme_server.engine.store.schema import metadata


@contextmanager
def copying(connection: Connection, query: Select[Any]) -> Iterator[Copy]:
    """Lend what reads the rows of a query, in the database's own format for binary ones.

    Raises:
        TenantNotBound: the query does not say whose rows it means, or means those of another tenant
            than the transaction is by.
    """
    compiled = query.compile(
        dialect=connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    assert isinstance(compiled, SQLCompiler)
    driver, values = postgres_of(connection), compiled.params
    for name in tenant_parameters(compiled, metadata.tables.keys()):
        if values[name] != driver.tenant_id:
            raise TenantNotBound(f"another tenant is bound in: {compiled}")
    given = [values[name] for name in compiled.positiontup or ()]
    with driver.cursor().copy(f"COPY ({compiled}) TO STDOUT (FORMAT binary)", given) as sent:
        yield sent
