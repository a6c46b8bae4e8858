"""Who comes before and after whom, where an index holds some of a session alone."""

from __future__ import annotations

from typing import Any

import pytest
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.selection import Selections
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.recall.answer import SessionTurns


@pytest.mark.parametrize(("whole", "before", "after"), [(True, [2, 3], [5, 9]), (False, [3], [5])])
def test_of_some_documents_none_is_taken_for_a_neighbour_that_may_not_be_one(
    whole: bool, before: list[int], after: list[int]
) -> None:
    table: Any = DocumentTable()
    places = {2: 1, 3: 5, 4: 6, 5: 7, 9: 18}
    table.add([Document(n, EVENT, f"e{n}", "", 1, "s", place) for n, place in places.items()])
    allowed = Selections(table).of(DocumentFilter())
    turns = SessionTurns.around_rows(table, [2], 2, allowed, whole=whole)
    assert (turns.before[2], turns.after[2]) == (before, after)
