"""Who comes before and after whom in a session."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

NO_ROW = -1


class SessionLinks:
    """A linked list of rows per session, ordered by (position, document id).

    Insertion at the end, the usual case, takes constant time; elsewhere it walks back from the end.
    Rows with session -1 have no neighbours, nor have those at position 0: they belong to a session
    without a place in it, as its summary does.
    """

    def __init__(self) -> None:
        self.previous: Int32s = np.empty(0, np.int32)
        self.next: Int32s = np.empty(0, np.int32)
        self._last: dict[int, int] = {}

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows."""
        for name in ("previous", "next"):
            larger = np.full(rows, NO_ROW, np.int32)
            links = getattr(self, name)
            larger[: links.size] = links
            setattr(self, name, larger)

    def insert(self, row: int, session: int, position: Int64s, doc_id: Int64s) -> None:
        """Put `row` in its place; `position` and `doc_id` are those of all rows."""
        if session < 0 or position[row] < 1:
            return
        place = (position[row], doc_id[row])
        before, after = self._last.get(session, NO_ROW), NO_ROW
        while before != NO_ROW and (position[before], doc_id[before]) > place:
            before, after = int(self.previous[before]), before
        self.previous[row], self.next[row] = before, after
        self._join(before, row)
        self._join(row, after)
        if after == NO_ROW:
            self._last[session] = row

    def remove(self, row: int, session: int) -> None:
        """Take `row` out; its neighbours become each other's."""
        if session < 0:
            return
        before, after = int(self.previous[row]), int(self.next[row])
        self._join(before, after)
        if self._last.get(session) == row:
            if before == NO_ROW:
                del self._last[session]
            else:
                self._last[session] = before
        self.previous[row] = self.next[row] = NO_ROW

    def rebuild(
        self, session: Int32s, position: Int64s, doc_id: Int64s, live: NDArray[np.bool_]
    ) -> None:
        """Link all rows of `session` that are live at once."""
        size = session.size
        previous, following = np.full_like(self.previous, NO_ROW), np.full_like(self.next, NO_ROW)
        linked = np.flatnonzero(live[:size] & (session >= 0) & (position[:size] > 0))
        rows = linked[np.argsort(session[linked], kind="stable")]
        # Nearly always they were recorded in their order; to look is faster than to sort.
        late = session[rows[1:]] == session[rows[:-1]]
        late &= (position[rows[1:]] < position[rows[:-1]]) | (
            (position[rows[1:]] == position[rows[:-1]]) & (doc_id[rows[1:]] < doc_id[rows[:-1]])
        )
        if late.any():
            rows = linked[np.lexsort((doc_id[linked], position[linked], session[linked]))]
        same = session[rows[1:]] == session[rows[:-1]]
        previous[rows[1:][same]] = rows[:-1][same]
        following[rows[:-1][same]] = rows[1:][same]
        last = rows[np.append(~same, True)] if rows.size else rows
        self._last = dict(zip(session[last].tolist(), last.tolist(), strict=True))
        self.previous, self.next = previous, following

    def _join(self, before: int, after: int) -> None:
        if before != NO_ROW:
            self.next[before] = after
        if after != NO_ROW:
            self.previous[after] = before
