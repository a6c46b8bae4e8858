"""The stores that the contract's tests run against.

A second implementation of `corpus.tenant_store.TenantStore` is one more `Stores` here, and has to
pass. "files" is what the server runs: a database for each tenant. "shared" keeps all tenants in one
database, so that nothing but the statements themselves keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.corpus.document import Document
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.corpus.tenant_store import TenantStore
from mneme_server.events.kinds import EVENT
from mneme_server.storage.sqlite_store import SqliteTenantStore


class Stores(Protocol):
    """Where tenants' stores come from."""

    def open(self, tenant_id: str) -> TenantStore[Any]:
        """Open the tenant's store; what it holds outlives its closing."""
        ...


class SqliteStores:
    """Stores on SQLite, in a folder for each tenant, or all in one."""

    def __init__(self, root: Path, *, shared: bool) -> None:
        self._root, self._shared = root, shared
        self._opened: list[SqliteTenantStore] = []

    def open(self, tenant_id: str) -> SqliteTenantStore:
        folder = self._root / ("all" if self._shared else tenant_id)
        folder.mkdir(exist_ok=True)
        store = SqliteTenantStore(folder, tenant_id, tenant_schema())
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture(params=["files", "shared"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    made = SqliteStores(tmp_path, shared=request.param == "shared")
    yield made
    made.close()


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
    from store_contract.samples import agent, event, lesson, reflection, session

    with store.write() as unit:
        unit.sessions.save([session("s1"), session("s2")])
        unit.events.append([event("e1", "s1", 1), event("e2", "s1", 2)])
        unit.agents.add_activity({"agent": agent("agent")})
        unit.lessons.save([lesson("l1"), lesson("l2", archived_us=5)])
        unit.reflections.add(reflection("r1"), None)
        unit.documents.add([document(name) for name in ("d1", "d2", "d3")])
