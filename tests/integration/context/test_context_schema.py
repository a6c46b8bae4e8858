"""The schema of summaries, and what a tenant of before is given."""

from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from mneme_server.capabilities import tenant_schema
from mneme_server.storage import tables
from mneme_server.storage.document_rows import select_documents
from mneme_server.storage.engine import SqliteDatabase
from mneme_server.storage.migrate import migrate
from mneme_server.storage.sqlite_store import FILE_NAME, SqliteTenantStore
from mneme_server.storage.unit import CORE_MIGRATIONS
from sqlalchemy import text


def test_a_tenants_tables_are_those_that_its_migrations_make(tmp_path: Path) -> None:
    SqliteTenantStore(tmp_path, "t", tenant_schema()).close()
    database = SqliteDatabase(tmp_path / FILE_NAME)
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, tables.metadata)
    database.close()
    assert differences == []


def test_sessions_of_before_are_queued_for_their_summaries(tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.mkdir()
    for file in sorted(CORE_MIGRATIONS.glob("[0-9]*.py"))[:1]:
        (older / file.name).write_text(file.read_text())
    database = SqliteDatabase(tmp_path / FILE_NAME)
    migrate(database, older)
    columns = (
        "tenant_id, id, agent_id, agent_name, user_id, project, tags, metadata, status,"
        " started_at, event_count, tool_call_count, error_count, llm_call_count, total_cost_usd,"
        " total_input_tokens, total_output_tokens, head_hash, declared"
    )
    with database.write() as connection:
        connection.execute(
            text(
                f"INSERT INTO sessions ({columns}) VALUES ('t', 'old', '', '', '', '', '[]',"
                " '{}', 2, 1, 0, 0, 0, 0, 0, 0, 0, '', 1)"
            )
        )
    database.close()
    upgraded = SqliteTenantStore(tmp_path, "t", tenant_schema())
    with upgraded.read() as unit:
        assert [item.session_id for item in unit.summary_queue.due(1, 10)] == ["old"]
    upgraded.close()


def test_a_handful_of_documents_is_looked_up_not_searched_for(tmp_path: Path) -> None:
    SqliteTenantStore(tmp_path, "t", tenant_schema()).close()
    database = SqliteDatabase(tmp_path / FILE_NAME)
    with database.read() as connection:
        query = select_documents("t").where(tables.documents.c.doc_id.in_(list(range(1, 9))))
        asked = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    database.close()
    assert "rowid=?" in plan[0][3]
