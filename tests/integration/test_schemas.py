"""Every released schema opens with this version, and the tables are what the migrations make."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import to_tuple
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.admin.store import catalog
from mneme_server.capabilities import tenant_schema
from mneme_server.context.kinds import SESSION
from mneme_server.corpus.document import Document
from mneme_server.events.kinds import EVENT
from mneme_server.learn.kinds import KNOWLEDGE, LESSON
from mneme_server.learn.lesson_model import LessonFilter
from mneme_server.learn.reflection_model import ReflectionFilter
from mneme_server.storage import sqlite_store, tables
from mneme_server.storage.engine import SqliteDatabase
from mneme_server.storage.migrate import schema_versions
from mneme_server.storage.unit import CORE_MIGRATIONS
from sqlalchemy.exc import IntegrityError
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
from support.server import local_server

FIXTURES = Path(__file__).parents[1] / "fixtures"
RELEASED = sorted(file.stem[-4:] for file in FIXTURES.glob("tenant-schema-*.sql"))
SECRET = "mn_the-key-of-the-released-tenant"


def revisions(folder: Path) -> list[str]:
    """The revisions in a folder, oldest first: of the trunk "0001", of a branch "notes_0001"."""
    names = (re.match(r"(?:[a-z]+_)*\d{4}(?=_)", file.name) for file in folder.glob("*.py"))
    return sorted(name[0] for name in names if name)


def test_every_schema_but_the_one_in_work_has_a_fixture() -> None:
    assert "0001" in RELEASED
    assert set(revisions(CORE_MIGRATIONS)[:-1]) <= set(RELEASED)
    assert {file.stem[-4:] for file in FIXTURES.glob("catalog-schema-*.sql")} == set(RELEASED)


def script_of(*folders: Path) -> ScriptDirectory:
    """Alembic's view of the revisions in some folders."""
    config = Config()
    config.set_main_option("script_location", str(CORE_MIGRATIONS.parent / "alembic_env"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, folders)))
    return ScriptDirectory.from_config(config)


def restore(fixture: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(fixture.read_text())


@pytest.fixture
def released(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    for version in RELEASED[:1]:
        restore(FIXTURES / f"catalog-schema-{version}.sql", data / "catalog.db")
        restore(FIXTURES / f"tenant-schema-{version}.sql", data / "tenants/default/mneme.db")
    return data


def _of_the_model_that_runs(data: Path, model: str) -> None:
    """Say that the vectors are of this model: which one is not what these tests are about."""
    with closing(sqlite3.connect(data / "tenants/default/mneme.db")) as connection:
        connection.execute("UPDATE settings SET value = ? WHERE key LIKE '%model%'", (model,))
        connection.commit()


@pytest.mark.on_sqlite("it opens files of released versions")
@pytest.mark.parametrize("version", RELEASED)
def test_what_a_released_version_stored_is_used_by_this_one(version: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    restore(FIXTURES / f"catalog-schema-{version}.sql", data / "catalog.db")
    restore(FIXTURES / f"tenant-schema-{version}.sql", data / "tenants/default/mneme.db")
    with local_server(data, admin_key=SECRET) as server:
        model = server.application.runtime.model.model_id
        _of_the_model_that_runs(data, model)
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
        for mode in (recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE):
            found = recall(api, "when does the ferry leave at noon?", mode=mode)
            assert ids_of(found)[0] == "ferry"
        record(api, event("a new event", "declared", id="new"), wait=True)
        assert ids_of(recall(api, "a new event"))[0] == "new"
        assert verify(api).valid


@pytest.mark.on_sqlite("it opens files of released versions")
@pytest.mark.parametrize("version", [v for v in RELEASED if v >= "0003"])
def test_the_knowledge_log_of_a_released_version_has_projects_and_fractions(
    version: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    restore(FIXTURES / f"catalog-schema-{version}.sql", data / "catalog.db")
    restore(FIXTURES / f"tenant-schema-{version}.sql", data / "tenants/default/mneme.db")
    with local_server(data, admin_key=SECRET) as server:
        _of_the_model_that_runs(data, server.application.runtime.model.model_id)
        learn = server.keys.api(SECRET).learn
        request = knowledge_pb.QueryKnowledgeRequest(query="npm install", project="project")
        (found,) = learn.QueryKnowledge(request).entries
    assert found.entry.project == "project"
    assert found.entry.success_rate == knowledge_pb.SuccessRate(successes=9, tries=10)


@pytest.mark.parametrize("version", RELEASED)
def test_what_a_released_version_stored_is_counted(version: str, tmp_path: Path) -> None:
    restore(FIXTURES / f"tenant-schema-{version}.sql", tmp_path / "mneme.db")
    store = sqlite_store.SqliteTenantStore(tmp_path, "default", tenant_schema())
    with store.read() as unit:
        kept = (unit.events.total(), unit.sessions.total(), unit.agents.total())
        lessons = (unit.lessons.total(), unit.lessons.count(LessonFilter(include_archived=True)))
        reflections = unit.reflections.count(ReflectionFilter())
    store.close()
    with closing(sqlite3.connect(tmp_path / "mneme.db")) as connection:

        def count(rows: str) -> int:
            return int(connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])

        assert kept == (count("events"), count("sessions"), count("agents")) >= (1, 1, 1)
        assert lessons == (count("lessons WHERE archived_at IS NULL"), count("lessons")) >= (1, 2)
        assert reflections == count("reflections")


def test_the_tenants_tables_are_those_that_the_migrations_make(tmp_path: Path) -> None:
    sqlite_store.SqliteTenantStore(tmp_path, "acme", tenant_schema()).close()
    database = SqliteDatabase(tmp_path / sqlite_store.FILE_NAME)
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, tables.metadata)
        script = script_of(*tenant_schema().migrations)
        # A revision that another one depends on goes without saying.
        implied = {
            name
            for one in script.walk_revisions()
            for name in to_tuple(one.dependencies, default=())
        }
        assert schema_versions(connection) == set(script.get_heads()) - implied
    database.close()
    assert differences == []


@pytest.mark.parametrize("folder", [*tenant_schema().migrations, catalog.MIGRATIONS], ids=str)
def test_revisions_form_one_line_that_ends_with_the_newest_file(folder: Path) -> None:
    folders = [folder] if folder == catalog.MIGRATIONS else tenant_schema().migrations
    script = script_of(*folders)
    own = [one for one in script.walk_revisions() if Path(one.path).parent == folder]
    line = [one.revision for one in sorted(own, key=lambda one: one.revision)]
    assert line == revisions(folder)
    assert [one.down_revision for one in own if one.revision != line[0]] == line[-2::-1]
    assert [name for name in script.get_heads() if name in line] == line[-1:]


def test_a_new_database_equals_one_that_was_upgraded_from_the_first_release(
    released: Path, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    sqlite_store.SqliteTenantStore(fresh, "default", tenant_schema()).close()
    upgraded = released / "tenants/default"
    sqlite_store.SqliteTenantStore(upgraded, "default", tenant_schema()).close()
    assert _schema(upgraded / "mneme.db") == _schema(fresh / "mneme.db")


def test_documents_keep_their_kinds_and_never_get_an_id_again(tmp_path: Path) -> None:
    restore(FIXTURES / "tenant-schema-0003.sql", tmp_path / "mneme.db")
    with closing(sqlite3.connect(tmp_path / "mneme.db")) as connection:
        connection.execute("DELETE FROM documents WHERE doc_id = 7")
        connection.commit()
        before = connection.execute(
            "SELECT doc_id, source_id, text, position, category, tags FROM documents"
        ).fetchall()
    database = sqlite_store.SqliteTenantStore(tmp_path, "default", tenant_schema())
    stored = database.source.documents_after(0, 100)
    assert [(d.doc_id, d.kind) for d in stored] == [
        (1, EVENT), (2, EVENT), (3, EVENT), (4, LESSON), (5, LESSON), (6, KNOWLEDGE),
    ]  # fmt: skip
    assert before == [
        (d.doc_id, d.source_id, d.text, d.position, d.category, json.dumps(d.tags)) for d in stored
    ]
    # What filters and the grouping of copies look at is taken from the events.
    assert [(d.type, d.name, d.role, d.severity, d.shape != 0) for d in stored[:4]] == [
        ("message", "", "", 2, False),
        ("tool_call", "book", "", 2, True),
        ("tool_error", "", "", 4, True),
        ("", "", "", 0, False),
    ]
    with database.write() as unit:
        (added,) = unit.documents.add([Document(0, SESSION, "another", "a text", 0)])
        with pytest.raises(IntegrityError):
            unit.documents.add([Document(0, SESSION, "another", "a text", 0)])
    assert added.doc_id == 8
    database.close()


def _schema(path: Path) -> dict[str, str]:
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    with closing(sqlite3.connect(path)) as connection:
        return {name: re.sub(r"[\s\"]+", " ", sql) for name, sql in connection.execute(query)}
