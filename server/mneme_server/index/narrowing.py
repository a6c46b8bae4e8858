"""How a selection is told to tantivy, which knows nothing of masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tantivy import Query

from mneme_server.corpus.ports import Rows, Selection
from mneme_server.index.columns import DocumentTable
from mneme_server.index.lexical import LexicalIndex

_FEW_ROWS = 2_000
_FEW_SESSIONS = 2_000
"""So many are named one by one: of a million memories that takes less than a millisecond, but to
go through the thousands that match best for a few that are selected takes twenty."""
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

    Few rows are named one by one. Of more, tantivy can find sessions, kinds and ranges of ids;
    what a filter on tags or projects lets through usually lies in few sessions, what it lets
    through of a time in a short range of ids.
    """
    live = table.live_count
    if selection.everything or selection.count > live * _WIDE:
        return Narrowing(None, live)
    rows: Rows = selection.rows
    ids = table.doc_id[rows]
    if rows.size <= _FEW_ROWS:
        return Narrowing(lexical.these(ids.tolist()), rows.size)
    first, last = int(ids.min()), int(ids.max())
    kinds = np.flatnonzero(np.bincount(table.kind[rows]))
    options: list[tuple[int, Callable[[], Query]]] = [
        (table.documents_between(first, last), lambda: lexical.between(first, last)),
        (
            table.documents_of(kinds),
            lambda: lexical.of_kinds(table.names_of("kind", kinds.tolist())),
        ),
    ]
    sessions = np.unique(table.session[rows].astype(np.int64))
    if sessions[0] != _NO_SESSION and sessions.size <= _FEW_SESSIONS:
        options.append(
            (
                table.documents_in(sessions),
                lambda: lexical.in_sessions(table.names_of("session", sessions.tolist())),
            )
        )
    universe, make = min(options, key=lambda option: option[0])
    return Narrowing(None, live) if universe > live * _WIDE else Narrowing(make(), universe)


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
