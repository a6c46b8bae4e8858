"""Documents, their vectors, and the queue of those that wait for one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.unit import EmbeddingModel
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.learn.model import LESSON
from store_contract.conftest import Stores, document

Store = TenantStore[Any]
FOREVER = 2**60


def _add(store: Store, *names: str, vectors: Any = None) -> list[int]:
    with store.write() as unit:
        added = unit.documents.add([document(name) for name in names], vectors)
    return [one.doc_id for one in added]


def _vectors(*values: float) -> Any:
    return np.array([[value, 0.0] for value in values], np.float32)


def test_documents_are_numbered_upwards_and_no_number_comes_twice(stores: Stores) -> None:
    store = stores.open("acme")
    first = _add(store, "a", "b")
    with store.write() as unit:
        unit.documents.remove(EVENT, ["a", "b"])
    store.close()
    again = stores.open("acme")
    second = _add(again, "c")
    assert first == sorted(first)
    assert second[0] > max(first)


def test_a_number_of_a_transaction_that_was_undone_may_come_again(store: Store) -> None:
    with suppress(KeyError), store.write() as unit:
        (lost,) = unit.documents.add([document("lost")])
        raise KeyError
    assert _add(store, "kept") == [lost.doc_id]


def test_what_was_added_is_read_back_as_it_was(store: Store) -> None:
    full = document(
        "full", LESSON, session_id="s", position=3, agent_id="a", user_id="u", project="p",
        category="c", importance=2, archived=True, tags=("one", "two"),
    )  # fmt: skip
    with store.write() as unit:
        (added,) = unit.documents.add([full])
    (found,) = store.source.documents_of([added.doc_id])
    assert found == added


def test_documents_come_in_pages_by_number(store: Store) -> None:
    numbers = _add(store, "a", "b", "c")
    page = store.source.documents_after(numbers[0], 1)
    assert [found.doc_id for found in page] == numbers[1:2]
    assert store.source.documents_after(numbers[2], 10) == []


def test_one_source_has_one_document_of_a_kind(store: Store) -> None:
    _add(store, "a")
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        _add(store, "a")
    with store.write() as unit:
        unit.documents.add([document("a", LESSON)])


def test_a_removed_document_takes_its_vector_and_its_place_in_the_queue_with_it(
    store: Store,
) -> None:
    (queued,) = _add(store, "queued")
    (embedded,) = _add(store, "embedded", vectors=_vectors(1))
    with store.write() as unit:
        unit.documents.remove(EVENT, ["queued", "embedded", "unknown"])
        assert sorted(unit.documents.changes.removed) == [queued, embedded]
        assert unit.documents.changes.queued == -1
    assert store.source.documents_of([queued, embedded]) == []
    assert len(store.source.vectors_of([embedded]).doc_ids) == 0
    with store.read() as unit:
        assert unit.queue.depth() == 0


def test_the_queue_gives_what_is_due_the_oldest_first(store: Store) -> None:
    numbers = _add(store, "a", "b", "c")
    with store.write() as unit:
        unit.queue.defer(numbers[:1], until_us=100, error="not now")
    with store.read() as unit:
        assert [queued.doc_id for queued in unit.queue.due(99, 10)] == numbers[1:]
        due = unit.queue.due(100, 10)
        assert [(queued.doc_id, queued.attempts) for queued in due] == [
            (numbers[0], 1), (numbers[1], 0), (numbers[2], 0),
        ]  # fmt: skip
        assert due[0].text == "what a says"
        assert (unit.queue.depth(), unit.queue.failed()) == (3, 1)
        assert unit.queue.waiting_of([*numbers[:2], 999]) == 2
        assert unit.queue.next_due_us() == 0


@pytest.mark.parametrize("count", [2, 8, 9, 30])
def test_what_is_embedded_leaves_the_queue_with_its_vector(store: Store, count: int) -> None:
    numbers = _add(store, *(f"n{number}" for number in range(count)))
    with store.write() as unit:
        due = unit.queue.due(FOREVER, count)
        unit.documents.remove(EVENT, ["n0"])  # Meanwhile.
        unit.queue.finish(due, _vectors(*range(count)))
    batch = store.source.vectors_after(0, count)
    assert batch.doc_ids.tolist() == numbers[1:]
    assert batch.vectors.tolist() == [[float(number), 0.0] for number in range(1, count)]
    with store.read() as unit:
        assert (unit.queue.depth(), unit.queue.next_due_us()) == (0, None)


def test_vectors_are_numbered_in_the_order_of_writing(store: Store) -> None:
    later, sooner = _add(store, "later", "sooner")
    with store.write() as unit:
        due = {queued.doc_id: queued for queued in unit.queue.due(FOREVER, 10)}
        unit.queue.finish([due[sooner]], _vectors(1))
    with store.write() as unit:
        unit.queue.finish([due[later]], _vectors(2))
    batch = store.source.vectors_after(0, 10)
    assert batch.doc_ids.tolist() == [sooner, later]
    rest = store.source.vectors_after(int(batch.seqs[0]), 10)
    assert rest.doc_ids.tolist() == [later]


@pytest.mark.parametrize("others", [0, 1, 8, 30])
def test_a_text_that_was_embedded_before_has_its_vector_already(store: Store, others: int) -> None:
    _add(store, "a", vectors=_vectors(3))
    with store.read() as unit:
        unknown = [f"what nobody says {number}" for number in range(others)]
        found = unit.queue.known_vectors(["what a says", *unknown])
    assert {text: vector.tolist() for text, vector in found.items()} == {
        "what a says": [[3.0, 0.0]]
    }


def test_a_long_text_has_a_vector_of_the_whole_and_one_of_each_passage(store: Store) -> None:
    before, long, after = _add(store, "before", "long", "after")
    parts = _vectors(5, 6, 7)
    with store.write() as unit:
        unit.set_embedding_model(EmbeddingModel("made", 2))
        due = {queued.doc_id: queued for queued in unit.queue.due(FOREVER, 10)}
        unit.queue.finish([due[before], due[long], due[after]], [_vectors(1), parts, _vectors(2)])
    for batch in (
        store.source.vectors_after(0, 10),
        store.source.vectors_of([before, long, after]),
    ):
        assert batch.doc_ids.tolist() == [before, long, long, long, after]
        assert batch.vectors[:, 0].tolist() == [1.0, 5.0, 6.0, 7.0, 2.0]
        assert len(set(batch.seqs.tolist())) == 3
    with store.read() as unit:
        assert unit.queue.known_vectors(["what long says"])["what long says"].tolist() == (
            parts.tolist()
        )
    assert store.source.vectors_after(0, 2).doc_ids.tolist() == [before, long, long, long]


def test_a_long_text_whose_passages_are_not_embedded_waits_for_them(store: Store) -> None:
    with store.write() as unit:
        added = unit.documents.add(
            [document("short"), replace(document("long"), text="It is said once more. " * 100)],
            np.vstack([_vectors(1), _vectors(2)]),
        )
        assert [queued.doc_id for queued in unit.queue.due(FOREVER, 10)] == [added[1].doc_id]
    assert store.source.vectors_after(0, 10).doc_ids.tolist() == [added[0].doc_id]


def test_everything_can_be_queued_again(store: Store) -> None:
    numbers = _add(store, "a", "b", vectors=_vectors(1, 2))
    with store.write() as unit:
        assert unit.embed_everything_again() == 2
        assert [queued.doc_id for queued in unit.queue.due(FOREVER, 10)] == numbers
    assert len(store.source.vectors_after(0, 10).doc_ids) == 0


def test_a_session_gives_its_documents_its_attributes(store: Store) -> None:
    with store.write() as unit:
        unit.documents.add([document("a", session_id="s"), document("b", session_id="t")])
        unit.documents.set_session(EVENT, "s", user_id="u", project="p", tags=("x",))
        unit.documents.set_archived(EVENT, "b", archived=True)
        unit.documents.set_value(EVENT, "b", 0.7)
    first, second = store.source.documents_after(0, 10)
    assert (first.user_id, first.project, first.tags, first.archived) == ("u", "p", ("x",), False)
    assert (second.user_id, second.archived) == ("", True)
    assert (first.value, second.value) == (0.0, 0.7)


def test_the_model_that_made_the_vectors_is_kept(stores: Stores) -> None:
    from mneme_server.engine.store.unit import EmbeddingModel

    store = stores.open("acme")
    with store.read() as unit:
        assert unit.embedding_model() is None
    with store.write() as unit:
        unit.set_embedding_model(EmbeddingModel("model", 4))
    store.close()
    with stores.open("acme").read() as unit:
        assert unit.embedding_model() == EmbeddingModel("model", 4)
