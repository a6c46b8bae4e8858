"""How a selection is told to tantivy, which knows nothing of masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tantivy import Query

from mneme_server.engine.corpus.ports import Rows, Selection
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.words.lexical import LexicalIndex

_FEW = 2_000
"""So many rows or sessions are named one by one, not more."""
_WANTED = 128
_A_NAME = 4.0
_PASSED = 1 / 32
"""What a search costs, in documents looked at (0.4 microseconds each, measured on 50,000): so many
that are selected are wanted, and looking for them takes more the fewer of those let through are;
each session or id that is named is looked up; and all that is let through is passed by."""
_NO_SESSION = -1
_WIDE = 0.5


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A restriction that lets all selected rows through and `universe` live rows in total.

    Without a `query` it is no restriction.
    """

    query: Query | None
    universe: int


def narrow(selection: Selection, table: DocumentTable, lexical: LexicalIndex) -> Narrowing:
    """Return the restriction that lets through as little else as can be had cheaply.

    tantivy can find ids, sessions, kinds and ranges of ids. What a filter on tags or projects lets
    through usually lies in few sessions, what it lets through of a time in a short range of ids.
    """
    live = table.live_count
    if selection.everything or selection.count > live * _WIDE:
        return Narrowing(None, live)
    rows: Rows = selection.rows
    if not rows.size:
        return Narrowing(lexical.these([]), 0)
    best = min(_options(rows, table, lexical), key=lambda option: option.cost(rows.size))
    if best.universe > live * _WIDE:
        return Narrowing(None, live)
    return Narrowing(best.make(), best.universe)


class _Option(NamedTuple):
    """A restriction that names so many ids, kinds or sessions, and lets `universe` rows through."""

    names: int
    universe: int
    make: Callable[[], Query]

    def cost(self, selected: int) -> float:
        return _WANTED * self.universe / selected + _A_NAME * self.names + _PASSED * self.universe


def _options(rows: Rows, table: DocumentTable, lexical: LexicalIndex) -> Iterator[_Option]:
    ids = table.doc_id[rows]
    first, last = int(ids.min()), int(ids.max())
    yield _Option(2, table.documents_between(first, last), lambda: lexical.between(first, last))
    kinds = np.flatnonzero(np.bincount(table.kind[rows]))
    yield _Option(
        kinds.size,
        table.documents_of(kinds),
        lambda: lexical.of_kinds(table.names_of("kind", kinds.tolist())),
    )
    if rows.size <= _FEW:
        yield _Option(rows.size, rows.size, lambda: lexical.these(ids.tolist()))
    sessions = np.unique(table.session[rows].astype(np.int64))
    if sessions[0] != _NO_SESSION and sessions.size <= _FEW:
        yield _Option(
            sessions.size,
            table.documents_in(sessions),
            lambda: lexical.in_sessions(table.names_of("session", sessions.tolist())),
        )


class Narrowings:
    """How selections are told to tantivy; that of the last one is kept."""

    def __init__(self, table: DocumentTable, lexical: LexicalIndex) -> None:
        self._table = table
        self._lexical = lexical
        self._last: tuple[Selection, Narrowing] | None = None

    def of(self, selection: Selection) -> Narrowing:
        """Return the narrowing of a selection."""
        last = self._last
        if last is None or last[0] is not selection:
            self._last = last = (selection, narrow(selection, self._table, self._lexical))
        return last[1]
