"""How a selection is told to tantivy, which knows nothing of masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tantivy import Query

from mneme_server.corpus.kinds import MAX_KINDS
from mneme_server.corpus.ports import Rows, Selection
from mneme_server.index.columns import DocumentTable
from mneme_server.index.lexical import LexicalIndex

_FEW_ROWS = 256
_FEW_SESSIONS = 256
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
    rows: Rows = np.flatnonzero(selection.mask)
    ids = table.doc_id[rows]
    if rows.size <= _FEW_ROWS:
        return Narrowing(lexical.these(ids.tolist()), rows.size)
    size = selection.mask.size
    alive = table.live[:size]

    first, last = int(ids.min()), int(ids.max())
    between = alive & (table.doc_id[:size] >= first) & (table.doc_id[:size] <= last)
    kinds = np.zeros(MAX_KINDS, bool)
    kinds[table.kind[rows]] = True
    of_kinds = alive & kinds[table.kind[:size]]
    options: list[tuple[int, Callable[[], Query]]] = [
        (int(np.count_nonzero(between)), lambda: lexical.between(first, last)),
        (
            int(np.count_nonzero(of_kinds)),
            lambda: lexical.of_kinds(table.kind_names(np.flatnonzero(kinds).tolist())),
        ),
    ]
    sessions = np.zeros(table.session_count + 1, bool)  # The last one stands for none.
    sessions[table.session[rows]] = True
    named = np.flatnonzero(sessions[:-1])
    if not sessions[-1] and named.size <= _FEW_SESSIONS:
        inside = alive & sessions[table.session[:size]]
        options.append(
            (
                int(np.count_nonzero(inside)),
                lambda: lexical.in_sessions(table.session_ids(named.tolist())),
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
