"""The feed: a row for each commit that changes what is searched, in the order of commits."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from mneme_server.engine.corpus.feed import START, FeedRow, LostPlace
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.model import LESSON
from store_contract.conftest import Stores, document
from store_contract.samples import session

Store = TenantStore[Any]


def _add(store: Store, *names: str) -> None:
    for name in names:
        with store.write() as unit:
            unit.documents.add([document(name, LESSON)])


def _rows(store: Store, after: Any = START, limit: int = 100) -> list[FeedRow]:
    with store.read() as unit:
        return list(unit.feed.changes_after(after, limit))


def test_commits_are_numbered_without_gaps_for_each_tenant_by_itself(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    _add(acme, "a")
    _add(rival, "a", "b")
    with suppress(KeyError), acme.write() as unit:
        unit.documents.add([document("undone", LESSON)])
        raise KeyError
    _add(acme, "b")
    for store in (acme, rival):
        rows = _rows(store)
        assert [row.position.number for row in rows] == [1, 2]
        assert [row.kinds[0].saved_ids for row in rows] == [("a",), ("b",)]


def test_a_commit_that_changes_nothing_that_is_searched_has_no_row(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
    assert _rows(store) == []
    with store.read() as unit:
        assert unit.feed.head() == START


def test_rows_come_in_pages_from_where_one_was(store: Store) -> None:
    _add(store, "a", "b", "c")
    first, second, third = _rows(store)
    assert _rows(store, limit=2) == [first, second]
    assert _rows(store, first.position, limit=1) == [second]
    assert _rows(store, third.position) == []


def test_a_row_with_another_mark_is_another_row(store: Store) -> None:
    _add(store, "a")
    (row,) = _rows(store)
    for place in (replace_mark(row), row.position._replace(number=9)):
        with pytest.raises(LostPlace):
            _rows(store, place)


def replace_mark(row: FeedRow) -> Any:
    return row.position._replace(mark=row.position.mark ^ 1)


def test_rows_tell_what_was_saved_embedded_and_removed(store: Store) -> None:
    _add(store, "a", "b")
    with store.write() as unit:
        due = unit.queue.due(1, 10)
        unit.queue.finish(due, np.ones((2, 4), np.float32))
        unit.documents.remove(LESSON, ["a"])
    last = _rows(store)[-1]
    first, second = (queued.doc_id for queued in due)
    assert last.embedded == ((first, second),)
    assert [(kind.kind, kind.removed, kind.removed_ids) for kind in last.kinds] == [
        ("lesson", ((first, first),), ("a",))
    ]


def test_the_feed_outlives_the_store(stores: Stores) -> None:
    before = stores.open("acme")
    _add(before, "a", "b")
    rows = _rows(before)
    before.close()
    after = stores.open("acme")
    assert _rows(after) == rows
    _add(after, "c")
    assert _rows(after)[-1].position.number == 3


def test_a_follower_moves_only_from_where_it_is(store: Store) -> None:
    _add(store, "a", "b")
    first, second = (row.position for row in _rows(store))
    with store.write() as unit:
        assert unit.feed.position_of("alerts") is None
        assert unit.feed.move("alerts", None, first)
        assert not unit.feed.move("alerts", None, second)  # It runs in another place, too.
        assert unit.feed.move("alerts", first, second)
    with store.write() as unit:
        assert unit.feed.position_of("alerts") == second
        unit.feed.forget("alerts")
        assert unit.feed.position_of("alerts") is None


def test_a_generation_is_the_tenants_own(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    with acme.write() as unit:
        made = unit.feed.renew_generation()
    with acme.read() as ours, rival.read() as theirs:
        assert (ours.feed.generation(), theirs.feed.generation()) == (made, None)
    with acme.write() as unit:
        assert unit.feed.renew_generation() != made
