"""What a filter lets through while others add and remove documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.index.columns import _CHANGES, DocumentTable
from mneme_server.engine.index.selection import Selections
from unit.engine.index.memory_source import event

ANNS = DocumentFilter(user_id="ann")


class Interrupted(DocumentTable):
    """A table that another thread changes just as its version is read."""

    def __init__(self) -> None:
        self.interrupting: list[Callable[[], object] | None] = []
        super().__init__()

    def _read(self, value: int) -> int:
        if self.interrupting and (change := self.interrupting.pop(0)) is not None:
            change()
        return value

    @property
    def version(self) -> int:
        return self._read(self._version)

    @version.setter
    def version(self, version: int) -> None:
        self._version = version


class CountedLate(DocumentTable):
    """A table whose documents are counted a moment after they were looked at."""

    def __init__(self) -> None:
        self.interrupting: Callable[[], object] | None = None
        super().__init__()

    @property
    def live_count(self) -> int:
        change, self.interrupting = self.interrupting, None
        if change is not None:
            change()
        return self._live_count

    @live_count.setter
    def live_count(self, live_count: int) -> None:
        self._live_count = live_count


@pytest.mark.parametrize("known", [False, True], ids=["asked first", "asked before"])
def test_a_filter_that_leaves_some_out_lets_not_everything_through_when_others_are_removed(
    known: bool,
) -> None:
    table = CountedLate()
    table.add([event(n, user_id="ann") for n in range(1, 4)])
    table.add([event(4, user_id="bob")])
    selections = Selections(table)
    if known:
        selections.of(ANNS)
        table.add([event(5, user_id="ann")])
    table.interrupting = lambda: table.remove([1])
    found = selections.of(ANNS)
    assert found.count == table.live_count
    assert not found.everything
    assert not found.mask[3]
    assert selections.of(DocumentFilter()).everything


@pytest.mark.parametrize("before", [0, 1], ids=["at once", "a moment later"])
def test_no_change_is_missed_when_another_comes_as_they_are_looked_at(before: int) -> None:
    table = Interrupted()
    table.add([event(1, user_id="bob")])
    selections = Selections(table)
    assert not selections.of(ANNS).count
    table.add([event(1, user_id="ann")])
    for number in range(2, _CHANGES + 1):
        table.add([event(number, user_id="bob")])
    table.interrupting = [*[None] * before, lambda: table.add([event(9_999, user_id="bob")])]
    assert np.flatnonzero(selections.of(ANNS).mask).tolist() == [0]
