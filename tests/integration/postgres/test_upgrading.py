"""Schemas in PostgreSQL: upgraded as a whole, beside servers of the version before."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlSessions
from store_contract.conftest import fill
from store_contract.samples import session
from support.postgres import PostgresServer, running
from support.recorded import BEFORE_THE_FIRST, VERSIONS, recorded
from support.schemas import CATALOG, CATALOG_TABLES, differences

SCHEMA = tenant_schema()
NOTES = """
import sqlalchemy as sa
from alembic import op
revision = "notes_0001"
down_revision = None
branch_labels = ("notes",)
depends_on = "0100"
def upgrade():
    op.create_table(
        "notes",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.id"]),
        sa.PrimaryKeyConstraint("tenant_id", "id"),
    )
    op.create_table(
        "numbered",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
                  autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.add_column("sessions", sa.Column("mood", sa.Text(), server_default="calm", nullable=False))
    op.execute("INSERT INTO notes (tenant_id, id, session_id)"
               " SELECT tenant_id, 'of ' || id, id FROM sessions")
    op.execute("INSERT INTO numbered (tenant_id, text) SELECT tenant_id, id FROM sessions")
"""
BROKEN = NOTES + '    op.execute("this is no SQL")\n'
NOBODYS = """
import sqlalchemy as sa
from alembic import op
revision = "notes_0001"
down_revision = None
branch_labels = ("notes",)
def upgrade():
    op.create_table("secrets", sa.Column("id", sa.Text(), primary_key=True))
"""
CONTRACTING = """
from alembic import op
revision = "notes_0002"
down_revision = "notes_0001"
phase = "contract"
def upgrade():
    op.drop_column("sessions", "mood")
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running() as server:
        server.execute(
            "CREATE ROLE mneme_tenant NOLOGIN NOBYPASSRLS", "CREATE USER mneme",
            "GRANT mneme_tenant TO mneme",
        )  # fmt: skip
        yield server


class Place:
    """A database whose owner is no superuser, and servers of some version that serve from it."""

    def __init__(self, postgres: PostgresServer, name: str) -> None:
        postgres.execute(f"CREATE DATABASE {name} OWNER mneme")
        self.url = postgres.url(name).replace("postgres@", "mneme@")
        self._postgres, self.name = postgres, name
        self._opened: list[Any] = []

    def serve(self, *branches: Path) -> Any:
        """Open the tenants' stores as a version does that has these branches besides."""
        from mneme_server.engine.store.postgres.store import PostgresStores

        known = dataclasses.replace(SCHEMA, migrations=(*SCHEMA.migrations, *branches))
        self._opened.append(PostgresStores(self.url, known))
        return self._opened[-1]

    def keep_catalog(self) -> None:
        """Open the catalog."""
        from mneme_server.engine.store.postgres.catalog import PostgresCatalog

        PostgresCatalog(self.url, CATALOG).close()

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask past all locks."""
        return self._postgres.execute(sql, database=self.name)

    def close(self) -> None:
        for stores in self._opened:
            stores.close()


@pytest.fixture
def place(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Place]:
    place = Place(postgres, "d" + str(abs(hash(request.node.name))))
    yield place
    place.close()


def branch(folder: Path, *sources: str) -> Path:
    folder.mkdir()
    for number, source in enumerate(sources, start=1):
        (folder / f"notes_{number:04}_step.py").write_text(source)
    return folder


def raw(unit: Any, sql: str) -> list[tuple[Any, ...]]:
    return list(unit._connection.connection.driver_connection.execute(sql).fetchall())


def fill_two(stores: Any) -> None:
    for tenant in ("acme", "rival"):
        fill(stores.open(tenant))


def test_an_upgrade_keeps_what_tenants_have_and_sees_all_of_it(
    place: Place, tmp_path: Path
) -> None:
    fill_two(place.serve())
    before = place.ask("SELECT tenant_id, id FROM mneme.sessions ORDER BY 1, 2")
    stores = place.serve(branch(tmp_path / "notes", NOTES))
    assert place.ask("SELECT tenant_id, session_id FROM mneme.notes ORDER BY 1, 2") == before
    with stores.open("acme").write() as unit:
        unit.get(SqlSessions).save([session("later")])
        assert raw(unit, "SELECT DISTINCT mood FROM sessions") == [("calm",)]


def test_tables_that_a_revision_makes_are_locked_for_all_but_their_tenant(
    place: Place, tmp_path: Path
) -> None:
    fill_two(place.serve())
    stores = place.serve(branch(tmp_path / "notes", NOTES))
    for table in ("sessions", "notes", "numbered"):
        with stores.open("acme").read() as unit:
            assert raw(unit, f"SELECT DISTINCT tenant_id FROM {table}") == [("acme",)]
    assert place.ask(
        "SELECT relname FROM pg_class WHERE relnamespace = 'mneme'::regnamespace AND relkind = 'r'"
        " AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1"
    ) == [
        ("alembic_version",), ("erasures",), ("leases",), ("nodes",), ("places",), ("revisions",),
    ]  # fmt: skip


def test_rows_that_a_revision_numbers_are_numbered_on_by_their_tenant(
    place: Place, tmp_path: Path
) -> None:
    fill_two(place.serve())
    place.serve(branch(tmp_path / "notes", NOTES))
    assert place.ask("SELECT tenant_id, value FROM mneme.numbers WHERE name = 'numbered'") == (
        place.ask("SELECT tenant_id, max(number) FROM mneme.numbered GROUP BY 1 ORDER BY 1")
    )
    (key,) = place.ask(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'mneme.numbered'::regclass AND contype = 'p'"
    )
    assert key == ("PRIMARY KEY (tenant_id, number)",)
    assert place.ask("SELECT 1 FROM pg_class WHERE relkind = 'S'") == []


@pytest.mark.parametrize("revision", [BROKEN, NOBODYS], ids=["broken", "of nobody"])
def test_a_failed_upgrade_changes_nothing(place: Place, tmp_path: Path, revision: str) -> None:
    stores = place.serve()
    fill_two(stores)
    before = schema_of(place), place.ask("SELECT * FROM mneme.revisions ORDER BY 1")
    with pytest.raises(Exception, match=r"no SQL|needs a column tenant_id"):
        place.serve(branch(tmp_path / "notes", revision))
    assert (schema_of(place), place.ask("SELECT * FROM mneme.revisions ORDER BY 1")) == before
    with stores.open("acme").write() as unit:
        assert unit.get(SqlSessions).total() > 0
        unit.get(SqlSessions).save([session("goes on")])


def test_a_server_of_the_version_before_serves_on_after_an_upgrade(
    place: Place, tmp_path: Path
) -> None:
    old = place.serve()
    fill_two(old)
    new = place.serve(branch(tmp_path / "notes", NOTES))
    with old.open("acme").write() as unit:
        unit.get(SqlSessions).save([session("from the old")])
    with new.open("acme").read() as unit:
        assert unit.get(SqlSessions).get("from the old") is not None


def test_a_server_of_the_version_before_starts_on_what_an_upgrade_added(
    place: Place, tmp_path: Path
) -> None:
    fill_two(place.serve(branch(tmp_path / "notes", NOTES)))
    with place.serve().open("acme").write() as unit:
        unit.get(SqlSessions).save([session("from the old")])


def test_a_tenant_deleted_by_the_version_before_leaves_nothing_in_newer_tables(
    place: Place, tmp_path: Path
) -> None:
    fill_two(place.serve())
    place.serve(branch(tmp_path / "notes", NOTES))
    place.serve().remove("acme")
    for table in ("notes", "numbered", "sessions", "events", "numbers"):
        assert place.ask(f"SELECT DISTINCT tenant_id FROM mneme.{table}") == [("rival",)]


def test_the_version_before_refuses_to_forget_what_it_does_not_know(
    place: Place, tmp_path: Path
) -> None:
    old = place.serve()
    fill_two(old)
    place.serve(branch(tmp_path / "notes", NOTES))
    with (
        pytest.raises(FailedPrecondition, match="numbered, notes"),
        old.open("acme").read() as unit,
    ):
        unit.require_overwriting()


def test_a_contraction_waits_until_nobody_serves_who_needs_what_it_takes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mneme_server.engine.store.postgres import schema

    monkeypatch.setattr(schema, "_PATIENCE_S", 0.5)
    both = branch(tmp_path / "notes", NOTES, CONTRACTING)
    old = place.serve()
    fill_two(old)
    with pytest.raises(FailedPrecondition, match="stop them") as refused:
        place.serve(both)
    assert refused.value.reason is Reason.SCHEMA_ERROR
    assert place.ask("SELECT to_regclass('mneme.notes')") == [(None,)]
    old.close()
    monkeypatch.undo()  # The server that was stopped has a moment to be gone.
    with place.serve(both).open("acme").read() as unit:
        assert unit.get(SqlSessions).total() > 0


def test_a_server_that_a_contraction_left_behind_is_refused(place: Place, tmp_path: Path) -> None:
    old = place.serve()  # It has not connected to tenants yet.
    place.serve(branch(tmp_path / "notes", NOTES, CONTRACTING))
    for use in (place.serve, lambda: old.holds("acme")):
        with pytest.raises(FailedPrecondition, match="notes_0002") as refused:
            use()
        assert refused.value.reason is Reason.SCHEMA_ERROR


def test_a_version_that_is_neither_older_nor_newer_is_refused(place: Place, tmp_path: Path) -> None:
    place.serve(branch(tmp_path / "notes", NOTES))
    other = tmp_path / "other"
    other.mkdir()
    (other / "other_0001_step.py").write_text(NOTES.replace("notes", "other"))
    with pytest.raises(FailedPrecondition, match="notes_0001"):
        place.serve(other)


def test_an_upgrade_meets_writers_and_none_of_them_fails_for_good(
    place: Place, tmp_path: Path
) -> None:
    from mneme_server.common.errors import Unavailable

    old = place.serve()
    done, written, failed = threading.Event(), [], []

    def write(tenant: str) -> None:
        store, number = old.open(tenant), 0
        while not done.is_set() or number < 5:
            try:
                with store.write() as unit:
                    unit.get(SqlSessions).save([session(f"s{number}")])
                written.append((tenant, f"s{number}"))
                number += 1
            except Unavailable:
                pass  # It may be sent again, and is.
            except Exception as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=write, args=(name,)) for name in ("acme", "rival")]
    for thread in threads:
        thread.start()
    try:
        place.serve(branch(tmp_path / "notes", NOTES))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert {*place.ask("SELECT tenant_id, id FROM mneme.sessions")} == {*written}


def test_two_servers_that_start_at_once_upgrade_once(place: Place, tmp_path: Path) -> None:
    fill_two(place.serve())
    notes = branch(tmp_path / "notes", NOTES)
    failed: list[BaseException] = []

    def start() -> None:
        try:
            place.serve(notes)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert place.ask("SELECT count(*) FROM mneme.notes") == place.ask(
        "SELECT count(*) FROM mneme.sessions"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_a_released_version_becomes_what_a_new_one_is(
    postgres: PostgresServer, place: Place, version: str
) -> None:
    postgres.execute(recorded("postgres", version), database=place.name)
    fresh = Place(postgres, f"fresh_{version}")
    try:
        for one in (place, fresh):
            one.serve(), one.keep_catalog()
        assert schema_of(place) == schema_of(fresh)
        for table in ("mneme.alembic_version", "mneme.revisions", "mneme_catalog.alembic_version"):
            asked = f"SELECT * FROM {table} ORDER BY 1"
            assert place.ask(asked) == fresh.ask(asked)
        with place.serve().open("default").read() as unit:
            assert [unit.get(SqlEvents).by_ids([one])[one].text for one in ("ferry", "full")] == [
                "the ferry leaves at noon", "no seats left",
            ]  # fmt: skip
            assert unit.get(SqlSessions).total() == 2
    finally:
        fresh.close()


def test_the_next_revision_upgrades_what_the_first_release_wrote(
    postgres: PostgresServer, place: Place, tmp_path: Path
) -> None:
    postgres.execute(recorded("postgres", "0100"), database=place.name)
    fresh = Place(postgres, "fresh_next")
    notes = branch(tmp_path / "notes", NOTES)
    try:
        fresh.serve(), fresh.keep_catalog()
        for one in (place, fresh):
            one.serve(notes)
        assert schema_of(place) == schema_of(fresh)
        assert place.ask("SELECT session_id FROM mneme.notes ORDER BY 1") == [
            ("declared",), ("opened",),
        ]  # fmt: skip
    finally:
        fresh.close()


def test_the_tables_are_those_that_are_defined(postgres: PostgresServer, place: Place) -> None:
    from mneme_server.engine.store.postgres.connections import engine_of
    from mneme_server.engine.store.postgres.schema import tables

    postgres.execute(recorded("postgres", VERSIONS[-1]), database=place.name)
    place.serve(), place.keep_catalog()
    for schema, defined in (("mneme", [tables()]), ("mneme_catalog", CATALOG_TABLES)):
        engine = engine_of(place.url, schema)
        with engine.connect() as connection:
            found = differences(connection, defined)
        engine.dispose()
        assert [one for one in found if not _is_of_the_servers(one)] == []


def _is_of_the_servers(difference: Any) -> bool:
    """Tell whether it is about what servers know of each other, which is defined as SQL."""
    kept = {"nodes", "leases", "places", "erasures", "revisions"}
    if difference[0] == "remove_index":
        return difference[1].table.name in kept
    return difference[0] == "remove_table" and difference[1].name in kept


@pytest.mark.parametrize("versions", BEFORE_THE_FIRST.values(), ids=BEFORE_THE_FIRST)
@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
@pytest.mark.parametrize("schema", ["mneme", "mneme_catalog"])
def test_a_database_of_a_build_from_before_the_first_release_is_refused_with_what_to_do(
    postgres: PostgresServer, place: Place, schema: str, noted: bool, versions: list[str]
) -> None:
    postgres.execute(recorded("postgres", "0100"), database=place.name)
    said = ", ".join(f"('{one}')" for one in versions)
    place.ask(f"DELETE FROM {schema}.alembic_version")
    place.ask(f"INSERT INTO {schema}.alembic_version VALUES {said}")
    if noted:
        place.ask(f"DELETE FROM {schema}.revisions")
        place.ask(f"INSERT INTO {schema}.revisions SELECT *, FALSE FROM {schema}.alembic_version")
    else:  # As the very first builds had it.
        place.ask(f"DROP TABLE {schema}.revisions")
    before = schema_of(place)
    with pytest.raises(FailedPrecondition, match="from before the first release") as refused:
        place.serve() if schema == "mneme" else place.keep_catalog()
    assert refused.value.reason is Reason.SCHEMA_ERROR
    assert "begin with a new data folder or database" in refused.value.message
    assert schema_of(place) == before


def schema_of(place: Place) -> list[tuple[Any, ...]]:
    """Return all columns, constraints, indexes and policies, in an order of their own."""
    return place.ask(
        "SELECT 'column', c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod),"
        "  attnotnull::text, coalesce(l.collname, '')::text,"
        "  coalesce(pg_get_expr(d.adbin, c.oid), '')"
        " FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND attnum > 0"
        " LEFT JOIN pg_collation AS l ON l.oid = attcollation"
        " LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = attnum"
        " WHERE relnamespace::regnamespace::text LIKE 'mneme%' AND relkind = 'r'"
        "  AND NOT attisdropped"
        " UNION ALL SELECT 'constraint', conrelid::regclass::text, pg_get_constraintdef(oid),"
        "  '', '', '', '' FROM pg_constraint "
        "  WHERE connamespace::regnamespace::text LIKE 'mneme%'"
        "  AND contype <> 'n'"
        " UNION ALL SELECT 'index', tablename, indexdef, '', '', '', '' FROM pg_indexes"
        "  WHERE schemaname LIKE 'mneme%'"
        " UNION ALL SELECT 'policy', tablename, qual, with_check, roles::text, '', ''"
        "  FROM pg_policies UNION ALL SELECT 'grant', table_name, privilege_type, '', '', '', ''"
        "  FROM information_schema.role_table_grants WHERE grantee = 'mneme_tenant'"
        " UNION ALL SELECT 'function', proname::text, pg_get_functiondef(oid), '', '', '', ''"
        "  FROM pg_proc WHERE pronamespace::regnamespace::text LIKE 'mneme%'"
        " ORDER BY 1, 2, 3, 4, 5, 6, 7"
    )
