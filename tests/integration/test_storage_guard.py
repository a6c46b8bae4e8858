"""A query that does not say whose rows it means is refused before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.storage.guard import TenantNotBound
from mneme_server.storage.schema import metadata
from mneme_server.storage.sqlite_store import SqliteTenantStore
from sqlalchemy import Table, delete, insert, select, text, update

TABLES = sorted(metadata.tables.values(), key=lambda table: table.name)
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteTenantStore]:
    database = SqliteTenantStore(tmp_path, "acme", tenant_schema())
    yield database
    database.close()


@every_table
def test_every_table_says_whose_its_rows_are(table: Table) -> None:
    assert "tenant_id" in table.columns
    for index in table.indexes:
        assert next(iter(index.columns)).name == "tenant_id", index.name


@every_table
def test_reading_without_a_tenant_is_refused(table: Table, database: SqliteTenantStore) -> None:
    engine = database._database.reader
    with engine.connect() as connection:
        with pytest.raises(TenantNotBound, match=table.name):
            connection.execute(select(table))
        with pytest.raises(TenantNotBound):
            connection.execute(text(f"SELECT count(*) FROM {table.name}"))
        connection.execute(select(table).where(table.c.tenant_id == "acme"))


@pytest.mark.filterwarnings("ignore:Column .* is marked as a member of the primary key")
@every_table
def test_writing_without_a_tenant_is_refused(table: Table, database: SqliteTenantStore) -> None:
    column = next(c for c in table.columns if c.name != "tenant_id")
    with database._database.writer.connect() as connection:
        for statement in (
            delete(table),
            update(table).values({column.name: 1}),
            insert(table).values({column.name: 1}),
        ):
            with pytest.raises(TenantNotBound):
                connection.execute(statement)
        connection.execute(delete(table).where(table.c.tenant_id == "acme"))


def test_a_join_must_bind_the_tenant_of_both_tables(database: SqliteTenantStore) -> None:
    events, sessions = metadata.tables["events"], metadata.tables["sessions"]
    joined = select(events.c.id).join(sessions, sessions.c.id == events.c.session_id)
    with database._database.reader.connect() as connection:
        with pytest.raises(TenantNotBound):
            connection.execute(joined.where(events.c.tenant_id == "acme"))
        connection.execute(
            joined.where(events.c.tenant_id == "acme", sessions.c.tenant_id == "acme")
        )


def test_a_subquery_must_bind_its_tenant_too(database: SqliteTenantStore) -> None:
    sessions, tags = metadata.tables["sessions"], metadata.tables["session_tags"]
    tagged = select(tags.c.session_id).where(tags.c.tag == "x")
    query = select(sessions.c.id).where(sessions.c.tenant_id == "acme", sessions.c.id.in_(tagged))
    with database._database.reader.connect() as connection, pytest.raises(TenantNotBound):
        connection.execute(query)
