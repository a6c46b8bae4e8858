"""Transactions: what they promise about each other, about errors, and about a store that closes."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from mneme_server.common.errors import MnemeError
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlSessions
from store_contract.conftest import Stores, document
from store_contract.samples import event, session

Store = TenantStore[Any]


def _sources(store: Store) -> list[str]:
    return [found.source_id for found in store.source.documents_after(0, 100)]


def test_what_a_transaction_wrote_is_there_when_it_has_ended(store: Store) -> None:
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        assert unit.get(SqlSessions).get("s") is not None
    with store.read() as unit:
        assert unit.get(SqlSessions).get("s").agent_id == "agent"


def test_a_transaction_that_raises_leaves_nothing_behind(store: Store) -> None:
    with store.read() as unit:
        head = unit.feed.head()
    with suppress(KeyError), store.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        unit.get(SqlEvents).append([event("e", "s", 1)])
        unit.documents.add([document("d")])
        raise KeyError
    with store.read() as unit:
        assert unit.get(SqlSessions).get("s") is None
        assert unit.get(SqlEvents).by_ids(["e"]) == {}
        assert (unit.queue.depth(), unit.feed.head()) == (0, head)
    assert _sources(store) == []


def test_a_reader_sees_one_state_whatever_is_written_meanwhile(store: Store) -> None:
    with store.read() as unit:
        assert unit.get(SqlSessions).get("s") is None
        with store.write() as writing:
            writing.get(SqlSessions).save([session("s")])
        assert unit.get(SqlSessions).get("s") is None
        assert unit.get(SqlSessions).total() == 0
    with store.read() as unit:
        assert unit.get(SqlSessions).total() == 1


def test_a_reader_does_not_see_what_is_not_committed(store: Store) -> None:
    with store.write() as writing:
        writing.get(SqlSessions).save([session("s")])
        with store.read() as unit:
            assert unit.get(SqlSessions).get("s") is None


def test_readers_and_a_writer_do_not_wait_for_each_other(store: Store) -> None:
    with store.read() as first, store.read() as second, store.write() as writing:
        writing.get(SqlSessions).save([session("s")])
        assert first.get(SqlSessions).get("s") is second.get(SqlSessions).get("s") is None


def test_a_reading_transaction_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"read-?\s?only"), store.read() as unit:
        unit.get(SqlSessions).save([session("s")])


def test_writers_come_one_after_the_other_and_none_loses_anothers_work(store: Store) -> None:
    """Each reads, decides by what it read, and writes: none may read before another is done."""
    with store.write() as unit:
        unit.get(SqlSessions).save([session("s")])

    def count_one_more() -> None:
        for _ in range(10):
            with store.write() as unit:
                found = unit.get(SqlSessions).get("s")
                found.event_count += 1
                unit.get(SqlSessions).save([found])

    threads = [threading.Thread(target=count_one_more) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as unit:
        assert unit.get(SqlSessions).get("s").event_count == 40


def test_what_was_written_outlives_the_store_that_wrote_it(stores: Stores) -> None:
    before = stores.open("acme")
    with before.write() as unit:
        unit.get(SqlSessions).save([session("s")])
        (added,) = unit.documents.add([document("d")])
    before.close()
    after = stores.open("acme")
    with after.read() as unit:
        assert unit.get(SqlSessions).get("s") is not None
        assert [queued.doc_id for queued in unit.queue.due(1, 10)] == [added.doc_id]
        assert unit.feed.head().number == 1
    assert _sources(after) == ["d"]


def test_a_store_that_is_closed_says_so(store: Store) -> None:
    store.close()
    for transaction in (store.read, store.write):
        with pytest.raises(MnemeError), transaction():
            pass


def test_a_tenant_that_is_removed_is_as_new_and_others_are_not(stores: Stores) -> None:
    for tenant in ("acme", "rival"):
        store = stores.open(tenant)
        with store.write() as unit:
            unit.get(SqlSessions).save([session("s")])
            unit.documents.add([document("d")])
        store.close()
    assert stores.holds("acme")
    stores.remove("acme")
    assert not stores.holds("acme")
    new, other = stores.open("acme"), stores.open("rival")
    with new.read() as unit:
        assert (unit.get(SqlSessions).total(), unit.feed.head().number) == (0, 0)
    assert (_sources(new), _sources(other)) == ([], ["d"])
    stores.remove("nobody")
