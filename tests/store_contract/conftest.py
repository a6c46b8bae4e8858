"""The stores that the contract's tests run against.

A second implementation of `engine.corpus.tenant_store.TenantStores` is one more line of `KINDS`,
and has to pass. "files" is what the server runs: a database for each tenant. "shared" keeps all
tenants in one SQLite database, so that nothing but the statements themselves keeps them apart.
"postgres" keeps them in one PostgreSQL, and is skipped where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import START
from mneme_server.engine.corpus.tenant_store import TenantStore, TenantStores
from mneme_server.engine.store.schema import metadata
from mneme_server.engine.store.sqlite_store import SqliteStores, SqliteTenantStore
from mneme_server.engine.store.unit import TenantSchema
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.store.reflections import SqlReflections
from mneme_server.features.learning.store.exports import SqlLearningExports
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.memory.store import SqlMemories
from sqlalchemy import delete
from support.postgres import PostgresServer, emptied, running

Stores: TypeAlias = TenantStores[Any]
MODEL = bytes(range(256)) * 600
"""What a session exported: more than a chunk."""


class SharedStores:
    """All tenants in one SQLite database."""

    def __init__(self, root: Path, schema: TenantSchema) -> None:
        self._root, self._schema = root, schema

    def open(self, tenant_id: str) -> SqliteTenantStore:
        return SqliteTenantStore(self._root, tenant_id, self._schema)

    def holds(self, tenant_id: str) -> bool:
        with closing(self.open(tenant_id)) as store, store.read() as unit:
            return unit.feed.head() != START

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        require()
        with closing(self.open(tenant_id)) as store, store.write() as unit:
            for table in reversed(metadata.sorted_tables):
                unit._connection.execute(delete(table).where(table.c.tenant_id == tenant_id))


class Closing:
    """Stores, all of which are closed in the end."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._opened: list[TenantStore[Any]] = []

    def open(self, tenant_id: str) -> TenantStore[Any]:
        store = self._stores.open(tenant_id)
        self._opened.append(store)
        return store

    def holds(self, tenant_id: str) -> bool:
        return self._stores.holds(tenant_id)

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        self._stores.remove(tenant_id, require)

    def close(self) -> None:
        for store in self._opened:
            store.close()


KINDS: dict[str, Callable[[Path, TenantSchema], Stores]] = {
    "files": SqliteStores,
    "shared": SharedStores,
}


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of this process's own."""
    with running() as server:
        yield server


@pytest.fixture(params=[*KINDS, "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with ExitStack() as opened:
        if request.param == "postgres":
            server = request.getfixturevalue("postgres")
            kept: Stores = opened.enter_context(emptied(server, tenant_schema()))
        else:
            kept = KINDS[request.param](tmp_path, tenant_schema())
        made = Closing(kept)
        opened.callback(made.close)
        yield made


@pytest.fixture
def store(stores: Stores) -> TenantStore[Any]:
    """A tenant's store, beside that of a rival who holds the same."""
    fill(stores.open("rival"))
    return stores.open("acme")


def document(source_id: str, kind: MemoryKind = EVENT, **fields: Any) -> Document:
    """Return a document that says something of its own."""
    given = {"text": f"what {source_id} says", "timestamp_us": 1} | fields
    return Document(0, kind, source_id, **given)


def fill(store: TenantStore[Any]) -> None:
    """Store some of everything, under the ids that tests use too."""
    from store_contract.samples import (
        agent,
        event,
        export_of,
        learning_session,
        lesson,
        memory,
        reflection,
        session,
    )

    with store.write() as unit:
        unit.get(SqlSessions).save([session("s1"), session("s2")])
        unit.get(SqlEvents).append([event("e1", "s1", 1), event("e2", "s1", 2)])
        unit.get(SqlAgents).add_activity({"agent": agent("agent")})
        unit.get(SqlLessons).save([lesson("l1"), lesson("l2", archived_us=5)])
        unit.get(SqlReflections).add(reflection("r1"), None)
        remembered = [
            memory("m1", tags=("a",), metadata_json='{"n":1}'),
            memory("m2", superseded_by="m1", until_us=5),
        ]
        unit.get(SqlMemories).save(remembered, {"m1": 1, "m2": 2})
        number = unit.get(SqlLearningSessions).add(learning_session("policy")).number
        unit.get(SqlLearningExports).put(number, export_of(MODEL), MODEL)
        unit.documents.add([document(name) for name in ("d1", "d2", "d3")])
