"""What SQLAlchemy writes of a statement serves all databases, and is written once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mneme_server.engine.store.connections import Statements
from mneme_server.engine.store.engine import SqliteDatabase
from sqlalchemy import Column, Integer, MetaData, Table, insert, select
from sqlalchemy.sql.compiler import SQLCompiler

FOLDERS = ("one", "another")


def test_a_statement_is_written_once_for_all_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table("numbers", MetaData(), Column("number", Integer))
    written, process = [], SQLCompiler.visit_select

    def note(self: SQLCompiler, *given: object, **more: object) -> object:
        written.append(given)
        return process(self, *given, **more)

    monkeypatch.setattr(SQLCompiler, "visit_select", note)
    for number, name in enumerate(FOLDERS):
        database = SqliteDatabase(tmp_path / f"{name}.db")
        with database.write() as connection:
            table.create(connection)
            connection.execute(insert(table), [{"number": number}])
            found = connection.execute(select(table.c.number)).all()
        with database.read() as connection:
            assert connection.execute(select(table.c.number)).all() == found == [(number,)]
        database.close()
    assert len(written) == 1


def test_what_is_kept_has_an_end() -> None:
    kept = Statements(capacity=2)
    for number in range(10):
        kept["a dialect", number] = number  # type: ignore[assignment]
    assert len(kept) <= 3
    assert kept.get(("another dialect", 9)) == 9
    assert kept.get(("a dialect", 0)) is None
