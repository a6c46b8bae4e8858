"""How documents are read."""

from __future__ import annotations

from pathlib import Path

from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store import schema
from mneme_server.engine.store.documents import select_documents
from mneme_server.engine.store.engine import SqliteDatabase
from mneme_server.engine.store.sqlite_store import FILE_NAME, SqliteTenantStore
from sqlalchemy import text


def test_a_handful_of_documents_is_looked_up_not_searched_for(tmp_path: Path) -> None:
    SqliteTenantStore(tmp_path, "t", tenant_schema()).close()
    database = SqliteDatabase(tmp_path / FILE_NAME)
    with database.read() as connection:
        query = select_documents("t").where(schema.documents.c.doc_id.in_(list(range(1, 9))))
        asked = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    database.close()
    assert "rowid=?" in plan[0][3]
