"""What learning sessions exported: one model of each, in chunks."""

from __future__ import annotations

import os
from typing import Any

import pytest
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.learning.model import Export
from mneme_server.features.learning.store.exports import CHUNK_BYTES, SqlLearningExports
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from store_contract.samples import export_of, learning_session

Store = TenantStore[Any]


def put(store: Store, session_id: str, data: bytes) -> int:
    """Store a model; return its session's number."""
    with store.write() as unit:
        known = unit.get(SqlLearningSessions).get(session_id)
        number = (known or unit.get(SqlLearningSessions).add(learning_session(session_id))).number
        unit.get(SqlLearningExports).put(number, export_of(data), data)
    return int(number)


def read(store: Store, number: int) -> tuple[Export | None, bytes]:
    with store.read() as unit:
        return unit.get(SqlLearningExports).get(number), b"".join(
            unit.get(SqlLearningExports).chunks(number, 0, 10_000)
        )


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 70 * CHUNK_BYTES + 3])
def test_a_model_is_read_back_byte_for_byte_whatever_its_size(store: Store, size: int) -> None:
    data = os.urandom(size)
    assert read(store, put(store, "s", data)) == (export_of(data), data)


def test_a_model_takes_the_place_of_the_one_before(store: Store) -> None:
    put(store, "s", os.urandom(3 * CHUNK_BYTES))
    number = put(store, "s", b"smaller")
    assert read(store, number) == (export_of(b"smaller"), b"smaller")


def test_chunks_are_read_some_at_a_time_in_their_order(store: Store) -> None:
    data = os.urandom(2 * CHUNK_BYTES + 1)
    number = put(store, "s", data)
    with store.read() as unit:
        parts = [unit.get(SqlLearningExports).chunks(number, first, 2) for first in (0, 2, 4)]
    assert [len(part) for part in parts] == [2, 1, 0]
    assert b"".join(b"".join(part) for part in parts) == data


def test_models_count_to_what_sessions_take_and_go_with_them(store: Store) -> None:
    number, other = put(store, "s", b"12345"), put(store, "other", b"123")
    with store.read() as unit:
        assert unit.get(SqlLearningSessions).taken_bytes() == 8
    with store.write() as unit:
        unit.get(SqlLearningSessions).delete(number)
    assert read(store, number) == (None, b"")
    assert read(store, other) == (export_of(b"123"), b"123")
    with store.read() as unit:
        assert unit.get(SqlLearningSessions).taken_bytes() == 3


def test_a_session_without_a_model_has_none(store: Store) -> None:
    assert read(store, 1) == (None, b"")


def test_a_tenants_model_is_not_a_rivals_of_the_same_number(stores: Any) -> None:
    here, there = stores.open("acme"), stores.open("rival")
    number = put(here, "s", b"ours")
    with there.read() as unit:
        assert unit.get(SqlLearningExports).get(number) is None
        assert unit.get(SqlLearningExports).chunks(number, 0, 10) == []
        assert unit.get(SqlLearningSessions).taken_bytes() == 0


def test_an_unfinished_transaction_leaves_the_model_before(store: Store) -> None:
    number = put(store, "s", b"before")

    def cut_short() -> None:
        with store.write() as unit:
            unit.get(SqlLearningExports).put(number, export_of(b"after"), b"after")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        cut_short()
    assert read(store, number) == (export_of(b"before"), b"before")
