"""Attributes as arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.corpus.words import name_words
from mneme_server.engine.index import selection
from mneme_server.engine.index.coding import author_of
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.selection import Selections
from mneme_server.engine.index.words.languages import asks, count_words
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.learn.model import LESSON
from unit.engine.index.memory_source import event

_NAMES = st.sampled_from(["", "a", "b", "c"])
_CATEGORIES = st.sampled_from(["", "message", "tool_error", "custom"])
_KINDS = (EVENT, LESSON, MemoryKind("note"))
_TAGS = st.frozensets(st.sampled_from(["x", "y", "z"]))

_DOCUMENTS = st.builds(
    Document,
    doc_id=st.integers(1, 40),
    kind=st.sampled_from(_KINDS),
    source_id=st.just("id"),
    text=st.sampled_from(["Is it so?", "Ann: it is so", "so"]),
    timestamp_us=st.integers(0, 20),
    session_id=_NAMES,
    position=st.integers(1, 10),
    agent_id=_NAMES,
    user_id=_NAMES,
    project=_NAMES,
    category=_NAMES | st.sampled_from(["message", "tool_error"]),
    importance=st.integers(1, 4),
    archived=st.booleans(),
    shape=st.sampled_from([0, 0, 7, -9]),
    value=st.sampled_from([0.0, -1.5, 0.7, np.nextafter(0.7, 1), 1e9]),
    tags=_TAGS.map(sorted).map(tuple),
)

_FILTERS = st.builds(
    DocumentFilter,
    kinds=st.frozensets(st.sampled_from(_KINDS)),
    agent_id=_NAMES,
    session_id=_NAMES,
    user_id=_NAMES,
    project=_NAMES,
    categories=st.frozensets(_CATEGORIES, max_size=2),
    importance=st.integers(0, 4),
    start_us=st.none() | st.integers(0, 20),
    end_us=st.none() | st.integers(0, 20),
    tags=_TAGS,
    include_archived=st.booleans(),
    min_value=st.none() | st.sampled_from([0.0, -2.0, 0.7, 0.7000001, 1e300, -1e300]),
)

Steps = list[list[Document] | frozenset[int]]
STEPS = st.lists(st.lists(_DOCUMENTS, max_size=6) | st.frozensets(st.integers(1, 40)), max_size=12)


def passes(document: Document, wanted: DocumentFilter) -> bool:
    return (
        (not wanted.kinds or document.kind in wanted.kinds)
        and wanted.agent_id in ("", document.agent_id)
        and wanted.session_id in ("", document.session_id)
        and wanted.user_id in ("", document.user_id)
        and wanted.project in ("", document.project)
        and (not wanted.categories or document.category in wanted.categories)
        and wanted.importance in (0, document.importance)
        and (wanted.start_us is None or document.timestamp_us >= wanted.start_us)
        and (wanted.end_us is None or document.timestamp_us < wanted.end_us)
        and wanted.tags <= set(document.tags)
        and (wanted.include_archived or not document.archived)
        and (wanted.min_value is None or document.value >= wanted.min_value)
    )


def apply(
    table: DocumentTable, steps: Steps, before: dict[int, Document] | None = None
) -> dict[int, Document]:
    live = dict(before or {})
    for step in steps:
        if isinstance(step, frozenset):
            table.remove(sorted(step))
            live = {i: document for i, document in live.items() if i not in step}
        else:
            table.add(step)
            live |= {document.doc_id: document for document in step}
    return live


@pytest.mark.parametrize("looked_up", [False, True])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS, STEPS, st.lists(_FILTERS, min_size=1, max_size=4))
def test_a_filter_selects_what_a_plain_predicate_does(
    looked_up: bool,
    monkeypatch: pytest.MonkeyPatch,
    steps: Steps,
    more: Steps,
    filters: list[DocumentFilter],
) -> None:
    monkeypatch.setattr(selection, "_SMALL", 0 if looked_up else 1_000)
    monkeypatch.setattr(selection, "_FEW", 1.0)
    monkeypatch.setattr(selection, "_BEHIND", 3)
    table = DocumentTable()
    selections = Selections(table)
    live: dict[int, Document] = {}
    for part in (steps, more):
        live = apply(table, part, live)
        compare(table, selections, live, [*filters, *filters])  # The second time from the cache.


@pytest.mark.parametrize("looked_up", [False, True])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS, STEPS)
def test_rows_are_alike_that_have_the_same_shape_or_without_one_the_same_text(
    looked_up: bool, monkeypatch: pytest.MonkeyPatch, steps: Steps, more: Steps
) -> None:
    monkeypatch.setattr(selection, "_SMALL", 0 if looked_up else 1_000)
    monkeypatch.setattr(selection, "_BEHIND", 3)
    table = DocumentTable()
    selections = Selections(table)
    live: dict[int, Document] = {}
    for part in (steps, more):
        live = apply(table, part, live)
        row_of = {i: int(np.flatnonzero(table.doc_id[: table.size] == i)[-1]) for i in live}
        for one in live.values():
            same = selections.alike(row_of[one.doc_id])
            assert same.tolist() == sorted(set(same.tolist()))
            found = {i for i, row in row_of.items() if row in same}
            assert found == {
                i
                for i, other in live.items()
                if (other.shape == one.shape if one.shape else other.text == one.text)
            }


def compare(
    table: DocumentTable,
    selections: Selections,
    live: dict[int, Document],
    filters: list[DocumentFilter],
) -> None:
    for wanted in filters:
        selection = selections.of(wanted)
        found = set(table.doc_id[np.flatnonzero(selection.mask)].tolist())
        assert found == {i for i, document in live.items() if passes(document, wanted)}
        assert selection.count == len(found)
        assert selection.rows.tolist() == np.flatnonzero(selection.mask).tolist()
        assert selection.everything == (len(found) == len(live))


@settings(max_examples=200, deadline=None)
@given(STEPS, st.booleans())
def test_neighbours_are_those_of_the_sorted_session(steps: Steps, relinked: bool) -> None:
    table = DocumentTable()
    live = apply(table, steps)
    if relinked:
        table.relink()
    sessions: dict[str, list[tuple[int, int]]] = {}
    for document in live.values():
        if document.session_id:
            place = (document.position, document.doc_id)
            sessions.setdefault(document.session_id, []).append(place)
    expected: dict[int, tuple[int, int]] = dict.fromkeys(live, (-1, -1))
    for places in sessions.values():
        ids = [-1, *(doc_id for _, doc_id in sorted(places)), -1]
        for before, doc_id, after in zip(ids, ids[1:], ids[2:], strict=False):
            expected[doc_id] = (before, after)
    rows = table.rows_of(np.array(sorted(live), np.int64))
    found = {
        int(table.doc_id[row]): tuple(
            int(table.doc_id[near]) if near >= 0 else -1
            for near in (table.previous[row], table.next[row])
        )
        for row in rows.tolist()
    }
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_the_arrays_hold_what_the_documents_do(
    steps: Steps,
) -> None:
    table = DocumentTable()
    live = apply(table, steps)
    authors: dict[int, str] = {}
    for doc_id, document in live.items():
        row = int(table.rows_of(np.array([doc_id]))[0])
        said = document.kind == EVENT and document.category in ("", "message")
        label = "Ann" if said and document.text.startswith("Ann: ") else ""
        author = document.agent_id or label
        assert table.names_of("kind", [int(table.kind[row])]) == [document.kind.name]
        assert table.position[row] == document.position
        assert table.timestamp_us[row] == document.timestamp_us
        assert table.importance[row] == document.importance
        assert table.words[row] == count_words(document.text)
        assert table.asks[row] == asks(document.text)
        assert table.spoken[row] == document.spoken
        assert table.failed[row] == document.failed
        assert table.spoken[row] == said
        assert table.failed[row] == (document.kind == EVENT and document.category == "tool_error")
        number = int(table.author[row])
        assert (number >= 0) == bool(author)
        assert authors.setdefault(number, author) == author
        assert not name_words(author) or number in table.authors_named_by(name_words(author))
    assert table.newest_us == max((d.timestamp_us for d in live.values()), default=0)
    assert sorted(table.live_ids().tolist()) == sorted(live)
    assert table.live_count == len(live)


def test_adding_a_known_document_changes_its_row_in_place() -> None:
    table = DocumentTable()
    first = event(1, user_id="u1", tags=("a",))
    table.add([first, event(2)])
    fresh, reworded = table.add([replace(first, user_id="u2", archived=True, tags=("b",))])
    assert (fresh, reworded, table.size) == ([], [], 2)
    assert Selections(table).of(DocumentFilter(user_id="u1")).count == 0
    assert Selections(table).of(DocumentFilter(tags=frozenset("a"))).count == 0
    selection = Selections(table).of(DocumentFilter(user_id="u2", tags=frozenset("b")))
    assert np.flatnonzero(selection.mask).tolist() == [0]
    assert Selections(table).of(DocumentFilter(include_archived=False)).count == 1


def test_a_known_document_with_another_text_is_reported_as_reworded() -> None:
    table = DocumentTable()
    table.add([event(1, "before"), event(2)])
    again = event(1, "after")
    assert table.add([again, event(3)]) == ([event(3)], [again])


def test_a_selection_stays_as_it_was_when_documents_arrive_later() -> None:
    table = DocumentTable()
    table.add([event(1)])
    before = Selections(table).of(DocumentFilter())
    table.add([event(2)])
    table.remove([1])
    assert before.mask.tolist() == [True]
    assert Selections(table).of(DocumentFilter()).mask.tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("Ann: it is so", "Ann"),
        ("Mary Ann O'Neil: yes", "Mary Ann O'Neil"),
        ("Here are the details: one", ""),
        ("error: no such file", ""),
        ("see https://example.org", ""),
        ("no label", ""),
    ],
)
def test_the_author_of_what_is_said_is_its_leading_name(text: str, author: str) -> None:
    assert author_of(event(1, text, category="message")) == author
    assert author_of(event(1, text, category="message", agent_id="planner")) == "planner"
    assert author_of(event(1, text, category="tool_response")) == ""


def test_a_name_nobody_has_selects_nothing() -> None:
    table = DocumentTable()
    table.add([event(1)])
    for wanted in (
        DocumentFilter(agent_id="nobody"),
        DocumentFilter(session_id="nowhere"),
        DocumentFilter(tags=frozenset({"never"})),
    ):
        assert Selections(table).of(wanted).count == 0


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("Ann: hello", "Ann"),
        ("Dr. Ann Smith: hello", "Dr. Ann Smith"),
        ("Jean-Luc: bonjour", "Jean-Luc"),
        ("李雷: 你好", "李雷"),
        ("Here are the details for your booking: none", ""),
        ("note: hello", ""),
        ("Ann:hello", ""),
        ("10: hello", ""),
    ],
)
def test_a_name_before_what_is_said_is_its_author(text: str, author: str) -> None:
    assert author_of(event(1, text, category="message")) == author


def test_what_a_tool_reports_has_no_author_but_its_agent() -> None:
    assert author_of(event(1, "Error: no seats", category="tool_error")) == ""
    assert author_of(event(1, "Ann: hello", category="tool_response", agent_id="bot")) == "bot"


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=6))
def test_the_newest_time_is_that_of_the_newest_document_after_every_change(
    parts: list[Steps],
) -> None:
    table = DocumentTable()
    live: dict[int, Document] = {}
    for part in parts:
        live = apply(table, part, live)
        assert table.newest_us == max((one.timestamp_us for one in live.values()), default=0)
