"""The attributes of documents are said once, and filters ask nothing of what is not among them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from mneme_server.engine.corpus.attributes import (
    ATTRIBUTES,
    BY_NAME,
    HELD,
    Among,
    Between,
    NotArchived,
    SaidBy,
    Tagged,
    conditions,
)
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.index.columns import COLUMNS, DocumentTable
from mneme_server.engine.store.schema import documents

NOTE = MemoryKind("note")
ASKED: dict[str, Any] = {
    "kinds": frozenset({NOTE}), "agent_id": "a", "session_id": "s", "user_id": "u", "project": "p",
    "categories": frozenset({"c"}), "importance": 3, "start_us": 1, "end_us": 2,
    "tags": frozenset({"t"}), "any_tags": frozenset({"t"}), "include_archived": False,
    "types": frozenset({"y"}), "min_severity": 4, "name": "n", "author": "Ann",
    "of_no_user": True, "session_ids": frozenset({"s"}), "min_value": 0.5,
}  # fmt: skip
QUALIFIES = {"shared", "archived_kinds"}
"""What says how others are meant."""


def test_a_store_has_a_column_of_each_attribute_and_of_nothing_else() -> None:
    assert {one.column for one in ATTRIBUTES} == set(documents.c.keys()) - {"tenant_id"}


def test_an_index_has_an_array_of_each_column() -> None:
    table = DocumentTable()
    assert set(HELD) < set(COLUMNS)
    assert {str(getattr(table, held).dtype) for held in HELD} == {a.dtype for a in HELD.values()}


def test_every_field_of_a_filter_is_tried_here() -> None:
    assert {field.name for field in fields(DocumentFilter)} == {*ASKED, *QUALIFIES}


@pytest.mark.parametrize("name", ASKED)
def test_every_field_of_a_filter_asks_for_something(name: str) -> None:
    assert len(list(conditions(DocumentFilter(**{name: ASKED[name]})))) == 1


def test_an_empty_filter_asks_for_nothing() -> None:
    assert list(conditions(DocumentFilter())) == []


def test_what_is_asked_for_names_its_attribute() -> None:
    wanted = DocumentFilter(
        agent_id="a", project="p", shared=True, start_us=1, tags=frozenset({"b", "a"}),
        any_tags=frozenset({"c"}), author="Ann", include_archived=False,
        archived_kinds=frozenset({NOTE}), session_ids=frozenset(),
    )  # fmt: skip
    assert list(conditions(wanted)) == [
        Among(BY_NAME["agent_id"], ["a", ""]),  # What is of no agent passes where it is shared.
        Among(BY_NAME["project"], ["p", ""]),
        Among(BY_NAME["session_id"], []),
        SaidBy("Ann"),
        Between(BY_NAME["timestamp_us"], 1, None),
        NotArchived([NOTE]),
        Tagged(["a", "b"], all=True),
        Tagged(["c"], all=False),
    ]


def test_attributes_stand_in_the_order_in_which_a_document_takes_them() -> None:
    """A row becomes a document by place."""
    assert [one.name for one in ATTRIBUTES] == [f.name for f in fields(Document)][: len(ATTRIBUTES)]
