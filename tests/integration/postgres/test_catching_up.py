"""An index on PostgreSQL catches up with what other servers wrote, whoever stops waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common import deadline
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.index.tenant_index import TenantIndex
from store_contract.conftest import document
from support.postgres import PostgresServer, emptied

PATIENCE_S = 30.0


@pytest.fixture
def stores(postgres: PostgresServer) -> Iterator[Any]:
    with emptied(postgres, tenant_schema()) as stores:
        yield stores


def until(holds: Callable[[], bool]) -> None:
    latest = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < latest, "it never came to that"
        time.sleep(0.01)


def write(store: Any, source_id: str) -> int:
    with store.write() as unit:
        (added,) = unit.documents.add([document(source_id)], np.array([[1, 0]], np.float32))
    return int(added.doc_id)


def test_an_index_stays_in_use_when_its_callers_time_is_up_before_it_has_caught_up(
    stores: Any, tmp_path: Path
) -> None:
    store = stores.open("acme")
    index = TenantIndex(tmp_path, store.source, "m", 2)
    tenant = OpenTenant[Any]("acme", store, index, queue_limit=10, wake=lambda _tenant: None)
    by_another = write(stores.open("acme"), "one")
    left: list[float | None] = [None]
    deadline.enter(lambda: left[0])
    try:
        with tenant.write() as unit:
            (own,) = unit.documents.add([document("two")], np.array([[0, 1]], np.float32))
            left[0] = 0.0  # It is committed, and then nobody waits any more.
    finally:
        deadline.leave()
    until(lambda: tenant.index.columns.rows_of(np.array([by_another, own.doc_id])).min() >= 0)
    assert tenant.index is index
    assert not index.partial
    tenant.close()
