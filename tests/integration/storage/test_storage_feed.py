"""The feed: a row for each commit, that names what changed, kept as long as somebody needs it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import (
    START,
    FeedRow,
    KindChange,
    LostPlace,
    Position,
    numbers_of,
    ranges,
)
from mneme_server.engine.store.feed import SqlFeed
from mneme_server.engine.store.schema import feed
from mneme_server.engine.store.sqlite_store import FILE_NAME, SqliteTenantStore
from mneme_server.engine.store.unit import EmbeddingModel, TenantSchema
from sqlalchemy import func, select

TALK, NOTE = MemoryKind("talk", lasting=True), MemoryKind("note")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteTenantStore]:
    schema = TenantSchema.of(kinds=[{TALK: None, NOTE: None}])
    database = SqliteTenantStore(tmp_path, "acme", schema)
    yield database
    database.close()


def said(name: str, kind: MemoryKind = TALK, commitment: bytes = b"") -> Document:
    return Document(0, kind, name, f"what {name} says", 1, commitment=commitment)


def write(database: SqliteTenantStore, count: int) -> None:
    first = rows(database)[-1].position.number if rows(database) else 0
    for n in range(count):
        with database.write() as unit:
            unit.documents.add([said(f"t{first + n}")])


def mumbling(folder: Path) -> None:
    """Have SQLite refuse rows of the feed with words that are no UTF-8, as a damaged schema may."""
    trigger = b"CREATE TRIGGER mumbles BEFORE INSERT ON feed BEGIN SELECT RAISE(ABORT, '%s'); END"
    with closing(sqlite3.connect(folder / FILE_NAME)) as file:
        file.execute((trigger % b"mumbled").decode())
        file.execute("PRAGMA writable_schema = ON")
        damaged = (trigger % b"\xa2umbled",)
        file.execute(
            "UPDATE sqlite_master SET sql = CAST(? AS TEXT) WHERE type = 'trigger'", damaged
        )
        file.commit()


def rows(database: SqliteTenantStore, place: Position = START) -> list[FeedRow]:
    with database.read() as unit:
        return list(unit.feed.changes_after(place, 100))


def test_what_the_database_says_of_its_damage_need_not_be_readable(tmp_path: Path) -> None:
    schema = TenantSchema.of(kinds=[{TALK: None, NOTE: None}])
    SqliteTenantStore(tmp_path, "acme", schema).close()
    mumbling(tmp_path)
    database = SqliteTenantStore(tmp_path, "acme", schema)
    with pytest.raises(DataLoss, match="is damaged"):
        write(database, 1)
    database.close()


def test_a_row_names_what_a_commit_changed_and_holds_none_of_it(
    database: SqliteTenantStore,
) -> None:
    commitments = [bytes([n]) * 32 for n in range(3)]
    with database.write() as unit:
        unit.documents.add([said(f"t{n}", TALK, commitments[n]) for n in range(3)])
    with database.write() as unit:
        unit.documents.add([said("n1", NOTE), said("n2", NOTE)], np.ones((2, 4), np.float32))
    with database.write() as unit:
        unit.documents.remove(NOTE, ["n1", "unknown"])
        unit.documents.set_archived(NOTE, "n2", archived=True)
    first, second, third = rows(database)
    joined = hashlib.sha256(b"".join(commitments)).hexdigest()
    assert first.kinds == (KindChange("talk", saved=((1, 3),), commitment=joined),)
    assert second.kinds == (KindChange("note", saved=((4, 5),), saved_ids=("n1", "n2")),)
    assert second.embedded == ((4, 5),)
    assert third.kinds == (
        KindChange("note", ((5, 5),), ((4, 4),), saved_ids=("n2",), removed_ids=("n1",)),
    )
    with database.read() as unit:
        stored = unit._connection.execute(
            select(func.group_concat(feed.c.changes)).where(feed.c.tenant_id == "acme")
        ).scalar_one()
    assert "says" not in stored


def test_rows_are_numbered_in_the_order_of_commits_and_what_is_undone_leaves_no_gap(
    database: SqliteTenantStore,
) -> None:
    write(database, 2)
    with suppress(RuntimeError), database.write() as unit:
        unit.documents.add([said("undone")])
        raise RuntimeError
    with database.write() as unit:
        unit.set_embedding_model(EmbeddingModel("none", 4))
    write(database, 1)
    positions = [row.position for row in rows(database)]
    assert [position.number for position in positions] == [1, 2, 3]
    assert len({position.mark for position in positions}) == 3
    with database.read() as unit:
        assert unit.feed.head() == positions[-1]
        assert unit.feed.changes_after(positions[-1], 10) == []
        assert [row.position for row in unit.feed.changes_after(positions[0], 1)] == positions[1:2]


def test_what_embeds_everything_again_says_so(database: SqliteTenantStore) -> None:
    write(database, 1)
    with database.write() as unit:
        unit.embed_everything_again()
    assert [row.everything for row in rows(database)] == [False, True]


def test_who_was_at_a_row_that_is_gone_or_another_has_lost_its_place(
    database: SqliteTenantStore,
) -> None:
    write(database, 4)
    last = rows(database)[-1].position
    for place in (last._replace(mark=last.mark ^ 1), Position(5, 1)):
        with pytest.raises(LostPlace):
            rows(database, place)
    with database.write() as unit:
        SqlFeed(unit._connection, "acme", kept=2).trim()
    assert [row.position.number for row in rows(database, Position(3, _mark(database, 3)))] == [4]
    for place in (START, Position(2, 0)):
        with pytest.raises(LostPlace):
            rows(database, place)


def _mark(database: SqliteTenantStore, number: int) -> int:
    with database.read() as unit:
        found: int = unit._connection.execute(
            select(feed.c.mark).where(feed.c.tenant_id == "acme", feed.c.number == number)
        ).scalar_one()
        return found


def test_a_durable_follower_holds_back_what_it_has_yet_to_read(
    database: SqliteTenantStore,
) -> None:
    write(database, 5)
    places = [row.position for row in rows(database)]
    with database.write() as unit:
        assert unit.feed.position_of("proofs") is None
        assert unit.feed.move("proofs", None, places[1])
    with database.write() as unit:
        assert not unit.feed.move("proofs", None, places[2]), "another place runs it"
        SqlFeed(unit._connection, "acme", kept=1).trim()
    assert [row.position.number for row in rows(database, places[1])] == [3, 4, 5]
    with database.write() as unit:
        assert unit.feed.move("proofs", places[1], places[3])
        assert unit.feed.position_of("proofs") == places[3]
        unit.feed.forget("proofs")
        SqlFeed(unit._connection, "acme", kept=1).trim()
    with pytest.raises(LostPlace):
        rows(database, places[3])


def test_the_store_gets_another_generation_when_it_is_asked_to(database: SqliteTenantStore) -> None:
    with database.write() as unit:
        assert unit.feed.generation() is None
        made = unit.feed.renew_generation()
    with database.write() as unit:
        assert unit.feed.generation() == made
        assert unit.feed.renew_generation() != made


def test_numbers_are_packed_into_runs() -> None:
    assert ranges([5, 1, 2, 3, 9, 2]) == ((1, 3), (5, 5), (9, 9))
    assert list(numbers_of(((1, 3), (9, 9)))) == [1, 2, 3, 9]
    assert ranges([]) == ()
