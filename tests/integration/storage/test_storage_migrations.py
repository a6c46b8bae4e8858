"""Schemas: made, upgraded as a whole, and refused when they are newer than the code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mneme_server.capabilities import catalog_migrations, tenant_schema
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.engine import SqliteDatabase
from mneme_server.engine.store.migrate import (
    NEWEST,
    as_sql,
    made_by_revisions,
    made_of,
    migrate,
    newest_versions,
    schema_versions,
)
from mneme_server.features.admin.store import catalog
from sqlalchemy import event, text

FIRST = """
from alembic import op
revision = "0001"
down_revision = None
def upgrade():
    op.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    op.execute("CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL"
               " REFERENCES parents (id) ON DELETE CASCADE)")
"""
SECOND = """
import sqlalchemy as sa
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade():
    with op.batch_alter_table("parents", recreate="always") as table:
        table.add_column(sa.Column("name", sa.String, nullable=False, server_default=""))
"""
BROKEN = """
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade():
    op.execute("CREATE TABLE half_done (id INTEGER)")
    op.execute("this is no SQL")
"""
ORPHANING = """
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade():
    op.execute("DELETE FROM parents")
"""


NOTES = """
from alembic import op
revision = "notes_0001"
down_revision = None
branch_labels = ("notes",)
def upgrade():
    op.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
"""


def _revisions(folder: Path, *sources: str) -> Path:
    folder.mkdir()
    for number, source in enumerate(sources, start=1):
        (folder / f"{number:04}_step.py").write_text(source)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "some.db")
    yield database
    database.close()


def _version(database: SqliteDatabase) -> str | None:
    with database.read() as connection:
        return ",".join(schema_versions(connection)) or None


def test_an_upgrade_keeps_rows_that_refer_to_a_table_made_anew(
    tmp_path: Path, database: SqliteDatabase
) -> None:
    migrate(database, _revisions(tmp_path / "old", FIRST))
    with database.write() as connection:
        connection.execute(text("INSERT INTO parents VALUES (1)"))
        connection.execute(text("INSERT INTO children VALUES (7, 1)"))
    migrate(database, _revisions(tmp_path / "new", FIRST, SECOND))
    assert _version(database) == "0002"
    with database.write() as connection:
        assert connection.execute(text("SELECT id, parent FROM children")).all() == [(7, 1)]
        assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1


@pytest.mark.parametrize("second", [BROKEN, ORPHANING])
def test_a_failed_upgrade_changes_nothing(
    tmp_path: Path, database: SqliteDatabase, second: str
) -> None:
    migrate(database, _revisions(tmp_path / "old", FIRST))
    with database.write() as connection:
        connection.execute(text("INSERT INTO parents VALUES (1)"))
        connection.execute(text("INSERT INTO children VALUES (7, 1)"))
    with pytest.raises(Exception, match=r"no SQL|refer to missing rows"):
        migrate(database, _revisions(tmp_path / "new", FIRST, second))
    assert _version(database) == "0001"
    with database.read() as connection:
        tables = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        assert set(tables.scalars()) == {"parents", "children", "alembic_version"}
        assert connection.execute(text("SELECT count(*) FROM parents")).scalar_one() == 1


def test_a_database_from_a_newer_version_is_refused_with_what_to_do(
    tmp_path: Path, database: SqliteDatabase
) -> None:
    migrate(database, _revisions(tmp_path / "new", FIRST, SECOND))
    with pytest.raises(FailedPrecondition, match="newer version") as refused:
        migrate(database, _revisions(tmp_path / "old", FIRST))
    assert refused.value.reason is Reason.SCHEMA_ERROR
    assert refused.value.metadata == {"schema": "0002", "newest_known_schema": "0001"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The revisions of a branch."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "notes_0001_first.py").write_text(NOTES)
    return folder


def test_a_branch_is_added_to_a_new_database_and_to_one_that_is_in_use(
    tmp_path: Path, database: SqliteDatabase, notes: Path
) -> None:
    trunk = _revisions(tmp_path / "trunk", FIRST)
    migrate(database, trunk)
    migrate(database, trunk, notes)
    assert {"parents", "notes"} <= _schema(database).keys()
    migrate(database, _revisions(tmp_path / "newer", FIRST, SECOND), notes)
    with database.read() as connection:
        assert schema_versions(connection) == {"0002", "notes_0001"}
    new = SqliteDatabase(tmp_path / "new.db")
    try:
        migrate(new, trunk, notes)
        assert {"parents", "notes"} <= _schema(new).keys()
    finally:
        new.close()


def test_a_database_with_the_tables_of_a_capability_that_is_missing_is_refused(
    tmp_path: Path, database: SqliteDatabase, notes: Path
) -> None:
    trunk = _revisions(tmp_path / "trunk", FIRST)
    migrate(database, trunk, notes)
    with pytest.raises(FailedPrecondition, match="notes_0001"):
        migrate(database, trunk)


@pytest.mark.parametrize("depends_on", ["", 'depends_on = "0001"', 'depends_on = "0002"'])
def test_opening_a_database_that_is_up_to_date_costs_one_select_with_any_number_of_branches(
    tmp_path: Path, database: SqliteDatabase, notes: Path, depends_on: str
) -> None:
    (file,) = notes.iterdir()
    file.write_text(f"{depends_on}\n{NOTES}")
    trunk = _revisions(tmp_path / "trunk", FIRST, SECOND)
    migrate(database, trunk, notes)
    said: list[str] = []
    for engine in (database.reader, database.writer):
        event.listen(engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    migrate(database, trunk, notes)
    assert said == ["SELECT version_num FROM alembic_version"]


def test_databases_are_migrated_side_by_side(tmp_path: Path) -> None:
    revisions = _revisions(tmp_path / "revisions", FIRST, SECOND)
    databases = [SqliteDatabase(tmp_path / f"{n}.db") for n in range(6)]
    threads = [threading.Thread(target=migrate, args=(d, revisions)) for d in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [_version(database) for database in databases] == ["0002"] * 6
    for database in databases:
        database.close()


def test_a_new_database_has_the_schema_of_one_that_grew_with_the_versions(tmp_path: Path) -> None:
    grown, new = SqliteDatabase(tmp_path / "grown.db"), SqliteDatabase(tmp_path / "new.db")
    try:
        migrate(grown, _revisions(tmp_path / "v1", FIRST))
        second = _revisions(tmp_path / "v2", FIRST, SECOND)
        for database in (grown, new):
            migrate(database, second)
        assert _schema(new) == _schema(grown)
        assert _version(new) == "0002"
        with new.write() as connection:  # As any other: with a write-ahead log, kept when closed.
            connection.execute(text("INSERT INTO parents (id, name) VALUES (1, 'a')"))
            assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
    finally:
        grown.close()
        new.close()


def test_a_database_of_somebody_elses_is_not_overwritten(
    tmp_path: Path, database: SqliteDatabase
) -> None:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE theirs (id INTEGER)"))
    migrate(database, _revisions(tmp_path / "v1", FIRST))
    assert "theirs" in _schema(database)


def _schema(database: SqliteDatabase) -> dict[str, str | None]:
    with database.read() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master"))
        return {row.name: row.sql for row in rows}


def test_opening_a_current_database_does_not_import_alembic(tmp_path: Path) -> None:
    catalog.Catalog(tmp_path / "catalog.db").close()
    code = (
        "import sys; from pathlib import Path;"
        "from mneme_server.features.admin.store.catalog import Catalog;"
        f"Catalog(Path({str(tmp_path / 'catalog.db')!r})).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SCHEMAS: dict[str, Callable[[], tuple[Path, ...]]] = {
    "catalog": lambda: (catalog.MIGRATIONS, *catalog_migrations()),
    "tenant": lambda: tenant_schema().migrations,
}


@pytest.mark.parametrize("whose", SCHEMAS)
def test_a_new_database_is_to_the_letter_what_the_revisions_make(whose: str) -> None:
    folders = SCHEMAS[whose]()
    sql = (folders[0] / NEWEST).read_text("utf-8")
    with closing(made_by_revisions(folders)) as grown, closing(made_of(sql)) as new:
        assert sql == as_sql(grown), "make generate"
        assert as_sql(new) == as_sql(grown)
        for setting in ("auto_vacuum", "page_size", "encoding", "user_version", "application_id"):
            asked = f"PRAGMA {setting}"
            assert new.execute(asked).fetchone() == grown.execute(asked).fetchone(), setting


def test_making_a_new_database_does_not_import_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from mneme_server.features.admin.store.catalog import MIGRATIONS, Catalog;"
        "from mneme_server.capabilities import catalog_migrations;"
        f"Catalog(Path({str(tmp_path / 'catalog.db')!r}), *catalog_migrations()).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_server_of_other_capabilities_has_new_databases_made_by_their_revisions(
    tmp_path: Path, database: SqliteDatabase, notes: Path
) -> None:
    trunk = tmp_path / "trunk"
    shutil.copytree(catalog.MIGRATIONS, trunk)
    migrate(database, trunk, notes)
    assert {"tenants", "notes"} <= _schema(database).keys()
    with database.read() as connection:
        assert schema_versions(connection) == set(newest_versions(trunk, notes))
