"""Every released schema opens with this version, and the tables are what the migrations make."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import to_tuple
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.capabilities import tenant_schema
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store import schema, sqlite_store
from mneme_server.engine.store.engine import SqliteDatabase
from mneme_server.engine.store.migrate import migrate, schema_versions
from mneme_server.engine.store.unit import CORE_MIGRATIONS
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.learn.model import LessonFilter
from mneme_server.features.learn.store.lessons import SqlLessons
from sqlalchemy import MetaData
from support.making import (
    at,
    event,
    export_lessons,
    ids_of,
    list_events,
    recall,
    record,
    search_lessons,
    session_of,
    verify,
)
from support.recorded import (
    BEFORE_THE_FIRST,
    RECORDED,
    SECRET,
    VERSIONS,
    restore,
    restore_folder,
    say_version,
)
from support.schemas import CATALOG, CATALOG_TABLES, TENANT, differences
from support.server import local_server, run_command

NEXT = """
import sqlalchemy as sa
from alembic import op
revision = "9999"
down_revision = "{newest}"
def upgrade():
    op.add_column("sessions", sa.Column("mood", sa.Text(), nullable=False, server_default="calm"))
    op.create_index("sessions_by_mood", "sessions", ["tenant_id", "mood"])
"""


def revisions(folder: Path) -> list[str]:
    """The revisions in a folder, oldest first: of the trunk "0100", of a branch "notes_0001"."""
    names = (re.match(r"(?:[a-z]+_)*\d{4}(?=_)", file.name) for file in folder.glob("*.py"))
    return sorted(name[0] for name in names if name)


def script_of(*folders: Path) -> ScriptDirectory:
    """Alembic's view of the revisions in some folders."""
    config = Config()
    config.set_main_option("script_location", str(CORE_MIGRATIONS.parent / "alembic_env"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, folders)))
    return ScriptDirectory.from_config(config)


def schema_of(path: Path) -> dict[str, str]:
    """A database's tables and indexes, each as the statement that makes it."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    with closing(sqlite3.connect(path)) as connection:
        return {name: re.sub(r"[\s\"]+", "", sql) for name, sql in connection.execute(query)}


def migrated(path: Path, *folders: Path) -> Path:
    """Bring a file to the newest of these revisions."""
    database = SqliteDatabase(path)
    try:
        migrate(database, *folders)
    finally:
        database.close()
    return path


def test_every_schema_but_the_one_in_work_is_recorded() -> None:
    assert "0100" in VERSIONS
    assert set(revisions(CORE_MIGRATIONS)[:-1]) <= set(VERSIONS)
    for name in ("catalog", "postgres"):
        recorded = {file.stem.partition("-")[2] for file in RECORDED.glob(f"{name}-*.sql")}
        assert recorded == set(VERSIONS)


@pytest.mark.on_sqlite("it opens files of released versions")
@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_released_version_stored_is_used_by_this_one(version: str, tmp_path: Path) -> None:
    file = restore_folder(version, tmp_path)
    with local_server(tmp_path, admin_key=SECRET) as server:
        # Which model made the vectors is not what this is about.
        with closing(sqlite3.connect(file)) as connection, connection:
            model = server.application.runtime.model.model_id
            connection.execute("UPDATE settings SET value = ? WHERE key LIKE '%model%'", (model,))
        api = server.keys.api(SECRET)
        tenants = api.admin.ListTenants(admin_pb.ListTenantsRequest()).tenants
        assert [tenant.id for tenant in tenants] == ["another", "default"]
        assert [found.id for found in list_events(api)] == ["ferry", "call", "full"]
        verified = verify(api)
        assert (verified.valid, verified.events_checked, verified.sessions_checked) == (True, 3, 2)
        session = session_of(api, "declared")
        assert (session.event_count, session.tool_call_count, session.total_cost_usd) == (
            2, 1, 0.25,
        )  # fmt: skip
        assert session.status == events_pb.SESSION_STATUS_COMPLETED
        assert (list(session.tags), session.ended_at) == (["one", "two"], at(9))
        lessons = export_lessons(api, include_archived=True)
        assert [item.id for item in lessons] == ["archived", "kept"]
        assert search_lessons(api, "book ferries early") == ["kept"]
        request = knowledge_pb.SearchKnowledgeRequest(
            query="npm install", filter=knowledge_pb.KnowledgeFilter(project="project")
        )
        (known,) = api.learn.SearchKnowledge(request).entries
        assert known.entry.success_rate == knowledge_pb.SuccessRate(successes=9, tries=10)
        for mode in (recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE):
            found = recall(api, "when does the ferry leave at noon?", mode=mode)
            assert ids_of(found)[0] == "ferry"
        record(api, event("a new event", "declared", id="new"), wait=True)
        assert ids_of(recall(api, "a new event"))[0] == "new"
        assert verify(api).valid


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_released_version_stored_is_counted(version: str, tmp_path: Path) -> None:
    restore("tenant", version, tmp_path / "mneme.db")
    store = sqlite_store.SqliteTenantStore(tmp_path, "default", tenant_schema())
    with store.read() as unit:
        assert (
            unit.get(SqlEvents).total(),
            unit.get(SqlSessions).total(),
            unit.get(SqlAgents).total(),
        ) == (3, 2, 2)
        assert unit.get(SqlLessons).total() == 1
        assert unit.get(SqlLessons).count(LessonFilter(include_archived=True)) == 2
    store.close()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "folders"), [("tenant", TENANT), ("catalog", CATALOG)])
def test_a_new_database_equals_one_that_was_upgraded_from_a_released_version(
    name: str, folders: tuple[Path, ...], version: str, tmp_path: Path
) -> None:
    upgraded = migrated(restore(name, version, tmp_path / "upgraded.db"), *folders)
    assert schema_of(upgraded) == schema_of(migrated(tmp_path / "fresh.db", *folders))


def test_the_next_revision_upgrades_what_the_first_release_wrote(tmp_path: Path) -> None:
    trunk = Path(shutil.copytree(CORE_MIGRATIONS, tmp_path / "trunk"))
    newest = revisions(CORE_MIGRATIONS)[-1]
    (trunk / "9999_moods.py").write_text(NEXT.format(newest=newest))
    folders = (trunk, *TENANT[1:])
    upgraded = migrated(restore("tenant", "0100", tmp_path / "upgraded.db"), *folders)
    assert schema_of(upgraded) == schema_of(migrated(tmp_path / "fresh.db", *folders))
    with closing(sqlite3.connect(upgraded)) as connection:
        moods = connection.execute("SELECT id, mood FROM sessions ORDER BY id").fetchall()
        assert moods == [("declared", "calm"), ("opened", "calm")]


@pytest.mark.parametrize(
    ("folders", "defined"),
    [(TENANT, [schema.metadata]), (CATALOG, CATALOG_TABLES)],
    ids=["tenant", "catalog"],
)
def test_the_tables_are_those_that_the_migrations_make(
    folders: tuple[Path, ...], defined: list[MetaData], tmp_path: Path
) -> None:
    database = SqliteDatabase(migrated(tmp_path / "fresh.db", *folders))
    with database.read() as connection:
        assert differences(connection, defined) == []
        script = script_of(*folders)
        # A revision that another one depends on goes without saying.
        implied = {
            name
            for one in script.walk_revisions()
            for name in to_tuple(one.dependencies, default=())
        }
        assert schema_versions(connection) == set(script.get_heads()) - implied
    database.close()


@pytest.mark.parametrize("folder", [*TENANT, *CATALOG], ids=str)
def test_revisions_form_one_line_that_ends_with_the_newest_file(folder: Path) -> None:
    script = script_of(*(CATALOG if folder in CATALOG else TENANT))
    own = [one for one in script.walk_revisions() if Path(one.path).parent == folder]
    line = [one.revision for one in sorted(own, key=lambda one: one.revision)]
    assert line == revisions(folder)
    assert [one.down_revision for one in own if one.revision != line[0]] == line[-2::-1]
    assert [name for name in script.get_heads() if name in line] == line[-1:]


@pytest.mark.parametrize("versions", BEFORE_THE_FIRST.values(), ids=BEFORE_THE_FIRST)
@pytest.mark.parametrize(("name", "folders"), [("tenant", TENANT), ("catalog", CATALOG)])
def test_a_database_of_a_build_from_before_the_first_release_is_refused_with_what_to_do(
    name: str, folders: tuple[Path, ...], versions: list[str], tmp_path: Path
) -> None:
    path = restore(name, "0100", tmp_path / "data" / "old.db")
    say_version(path, versions)
    before = schema_of(path)
    with pytest.raises(FailedPrecondition) as refused:
        migrated(path, *folders)
    assert refused.value.reason is Reason.SCHEMA_ERROR
    assert refused.value.message == (
        "data/old.db was made by a build from before the first release, whose data this version"
        " does not read: export what it holds with that build and import it here, or begin with a"
        " new data folder or database"
    )
    assert schema_of(path) == before


@pytest.mark.on_sqlite("it starts on a data folder of an older build")
def test_a_server_does_not_start_on_a_folder_from_before_the_first_release(tmp_path: Path) -> None:
    restore_folder("0100", tmp_path / "data")
    say_version(tmp_path / "data" / "catalog.db", BEFORE_THE_FIRST["of a catalog"])
    ended = run_command("serve", tmp_path / "data")
    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith(
        "mneme-server: data/catalog.db was made by a build from before the first"
    )
