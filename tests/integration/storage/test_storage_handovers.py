"""Handovers in a tenant's database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.features.context.model import Collected, Decision, Handover, LockedContext, Todo
from mneme_server.features.context.store.handovers import SqlHandovers
from mneme_server.features.events.model import Session
from mneme_server.features.events.store.sessions import SqlSessions

FULL = Handover(
    "full", project="p", agent_id="a", progress=("x",), completed_todos=("y",),
    open_todos=(Todo("z", 2),), decisions=(Decision("d", "because e"),),
    locked_contexts=(LockedContext("l", "1"),), files=("f.py",), unresolved_errors=("g",),
    collected=(Collected("files", 0, ("e1",)),), tools=("t",), duration_s=7, summary="x",
    created_us=1,
)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteTenantStore]:
    made = SqliteTenantStore(tmp_path, "t", tenant_schema())
    with made.write() as unit:
        unit.get(SqlSessions).save([Session(id=name) for name in ("full", "todo", "empty")])
    yield made
    made.close()


def test_everything_that_a_handover_holds_comes_back(database: SqliteTenantStore) -> None:
    with database.write() as unit:
        unit.get(SqlHandovers).save(FULL)
    with database.read() as unit:
        assert unit.get(SqlHandovers).get_many(["full"]) == {"full": FULL}
        assert unit.get(SqlHandovers).last("p", "a", "") == FULL


def test_a_handover_of_open_todos_alone_is_the_last_one(database: SqliteTenantStore) -> None:
    todo = Handover("todo", project="p", open_todos=(Todo("z"),), created_us=2)
    with database.write() as unit:
        unit.get(SqlHandovers).save(FULL)
        unit.get(SqlHandovers).save(todo)
    with database.read() as unit:
        assert unit.get(SqlHandovers).last("p", "", "") == todo
        assert unit.get(SqlHandovers).get_many(["todo"]) == {"todo": todo}
