"""How a store on PostgreSQL is read by a question that comes before there is an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common import deadline
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.store.guard import TenantNotBound
from mneme_server.engine.store.postgres import scanning
from mneme_server.engine.store.postgres.driver import postgres_of
from mneme_server.engine.store.postgres.scanning import copying
from mneme_server.engine.store.schema import documents
from sqlalchemy import select
from store_contract.conftest import document
from support.postgres import PostgresServer, emptied

WIDTH = 2
SAID = ["", "naïve", *(f"text {n}" for n in range(28))]


@pytest.fixture
def stores(postgres: PostgresServer) -> Iterator[Any]:
    with emptied(postgres, tenant_schema()) as stores:
        yield stores


@pytest.fixture
def filled(stores: Any) -> Any:
    """A store with 30 memories, each with a vector that begins with its number, beside another."""
    for tenant in ("rival", "acme"):
        store = stores.open(tenant)
        with store.write() as unit:
            vectors = np.array([[n + 1, 0] for n in range(len(SAID))], np.float32)
            unit.documents.add(
                [document(f"d{n}", text=text) for n, text in enumerate(SAID)], vectors
            )
    return store


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four texts, or three vectors, come as one value."""
    monkeypatch.setattr(scanning, "_TEXTS_EACH", 4)
    monkeypatch.setattr(scanning, "_PAGE_BYTES", 3 * WIDTH * 4)


def texts_of(store: Any, filter_: DocumentFilter, limit: int = 1_000) -> tuple[int, dict[int, str]]:
    """Return how many pages there were, and the texts by number."""
    said: dict[int, str] = {}
    pages = list(store.scan.texts(filter_, limit))
    for page in pages:
        ends = np.cumsum(page.sizes + 1) - 1
        for doc_id, size, end in zip(page.doc_ids, page.sizes, ends, strict=True):
            said[int(doc_id)] = page.joined[end - size : end].decode()
    return len(pages), said


def vectors_of(store: Any) -> tuple[int, dict[int, float]]:
    batches = list(store.scan.vectors(WIDTH))
    firsts = {
        int(doc_id): float(vector[0])
        for batch in batches
        for doc_id, vector in zip(batch.doc_ids, batch.vectors, strict=True)
    }
    return len(batches), firsts


def test_all_vectors_of_long_texts_are_read(filled: Any, small_pages: None) -> None:
    long = [
        np.array([[n, 0.0] for n in range(first, first + 50)], np.float32) for first in (100, 200)
    ]
    with filled.write() as unit:
        added = unit.documents.add([document("long"), document("longer")])
        queued = {one.doc_id: one for one in unit.queue.due(2**60, 10)}
        unit.queue.finish([queued[one.doc_id] for one in added], long)
    read: dict[int, list[float]] = {one.doc_id: [] for one in added}
    for batch in filled.scan.vectors(WIDTH):
        for doc_id, vector in zip(batch.doc_ids.tolist(), batch.vectors, strict=True):
            if doc_id in read:
                read[doc_id].append(float(vector[0]))
    assert list(read.values()) == [vectors[:, 0].tolist() for vectors in long]
    _, firsts = vectors_of(filled)
    assert len(firsts) == len(SAID) + 2


def delete(store: Any, numbers: range) -> None:
    with store.write() as unit:
        driver = postgres_of(unit._connection)
        for table in ("vectors", "documents"):
            driver.execute(f"DELETE FROM {table} WHERE doc_id = ANY(%s)", (list(numbers),))


@pytest.mark.usefixtures("small_pages")
def test_many_pages_hold_all_there_is(filled: Any) -> None:
    numbers = range(1, len(SAID) + 1)
    assert texts_of(filled, DocumentFilter()) == (8, dict(zip(numbers, SAID, strict=True)))
    assert vectors_of(filled) == (10, {n: float(n) for n in numbers})


@pytest.mark.usefixtures("small_pages")
def test_pages_of_which_nothing_is_left_are_passed_over(filled: Any) -> None:
    delete(filled, range(1, 4))
    delete(filled, range(6, 25))
    left = [4, 5, *range(25, len(SAID) + 1)]
    assert texts_of(filled, DocumentFilter())[1] == {n: SAID[n - 1] for n in left}
    assert vectors_of(filled)[1] == {n: float(n) for n in left}


@pytest.mark.usefixtures("small_pages")
def test_of_more_texts_than_were_asked_for_the_newest_come(filled: Any) -> None:
    newest = range(len(SAID) - 6, len(SAID) + 1)
    assert texts_of(filled, DocumentFilter(), 7)[1] == {n: SAID[n - 1] for n in newest}


@pytest.mark.usefixtures("small_pages")
def test_what_no_text_passes_has_no_pages(stores: Any, filled: Any) -> None:
    nobodys = DocumentFilter(session_ids=frozenset({"nowhere"}), tags=frozenset({"50%"}))
    assert texts_of(filled, nobodys) == (0, {})
    assert texts_of(stores.open("nobody"), DocumentFilter()) == (0, {})
    assert vectors_of(stores.open("nobody")) == (0, {})


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("what", ["texts", "vectors"])
def test_nothing_more_is_read_for_a_caller_who_has_left(filled: Any, what: str) -> None:
    is_over = False
    scan = filled.scan
    deadline.enter(lambda: 0.0 if is_over else None)
    try:
        with closing(
            scan.texts(DocumentFilter(), 100) if what == "texts" else scan.vectors(WIDTH)
        ) as pages:
            assert next(pages)
            is_over = True
            with pytest.raises(deadline.Abandoned):
                next(pages)
    finally:
        deadline.leave()
    assert len(texts_of(filled, DocumentFilter())[1]) == len(SAID)


def test_what_is_copied_must_say_whose_it_is(filled: Any) -> None:
    theirs = select(documents.c.text).where(documents.c.tenant_id == "rival")
    for query in (select(documents.c.text), theirs):
        with (
            filled.read() as unit,
            pytest.raises(TenantNotBound),
            copying(unit._connection, query),
        ):
            pass


def test_no_statement_is_compiled_for_what_it_seems_to_take(stores: Any) -> None:
    """By its estimates PostgreSQL would, where it can."""
    with stores.open("acme").read() as unit, stores.open("acme").write() as writing:
        for one in (unit, writing):
            said = postgres_of(one._connection).execute("SHOW jit").fetchall()
            assert said == [("off",)]


def test_connections_that_were_opened_ahead_are_those_that_are_used(stores: Any) -> None:
    readers = stores.database.readers
    readers.open_ahead(2)
    opened = {postgres_of(one).info.backend_pid for one in readers._resting}
    assert len(opened) >= 2
    readers.open_ahead(2)
    with stores.open("acme").read() as one, stores.open("acme").read() as other:
        used = {postgres_of(unit._connection).info.backend_pid for unit in (one, other)}
    assert used <= opened
