"""What a store keeps can be kept by another kind of store, and is the same there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.sqlite_store import SqliteStores
from mneme_server.engine.store.tenant_copy import contents, copy, sizes
from mneme_server.features.events.event_types import EVENT
from store_contract.conftest import document, fill


def quietly(_table: str, _done: int, _rows: int) -> None:
    """Tell nobody."""


@pytest.fixture
def filled(store: TenantStore[Any]) -> TenantStore[Any]:
    fill(store)
    with store.write() as unit:
        unit.documents.add([document("last")])
        unit.documents.remove(EVENT, ["last"])
    return store


@pytest.fixture
def elsewhere(tmp_path: Path) -> TenantStore[Any]:
    return SqliteStores(tmp_path / "elsewhere", tenant_schema()).open("acme")


def test_all_that_is_copied_is_the_same_there_and_on_the_way_back(
    filled: TenantStore[Any], elsewhere: TenantStore[Any], stores: Any
) -> None:
    with closing(elsewhere):
        there = copy(filled, elsewhere, quietly)
        assert contents(elsewhere, quietly) == there
        assert {table: found.rows for table, found in there.items()} == sizes(filled)
        assert there["events"].rows == 2
        filled.close()
        stores.remove("acme")
        again = stores.open("acme")
        assert not any(sizes(again).values())
        copy(elsewhere, again, quietly)
        assert contents(again, quietly) == there


def test_a_number_is_not_given_again_after_its_row_was_copied_or_removed(
    filled: TenantStore[Any], elsewhere: TenantStore[Any]
) -> None:
    with closing(elsewhere):
        copy(filled, elsewhere, quietly)
        with filled.write() as unit:
            (here,) = unit.documents.add([document("next")])
        with elsewhere.write() as unit:
            (there,) = unit.documents.add([document("next")])
        assert there.doc_id == here.doc_id


def test_a_row_that_differs_is_noticed(
    filled: TenantStore[Any], elsewhere: TenantStore[Any]
) -> None:
    with closing(elsewhere):
        there = copy(filled, elsewhere, quietly)
        with elsewhere.write() as unit:
            unit.documents.set_archived(EVENT, "d1", archived=True)
        found = contents(elsewhere, quietly)
        assert {table for table in there if found[table] != there[table]} == {"documents", "feed"}
