"""The rows of documents: by their ids, and by who comes before and after whom in a session."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
GONE = -1
NO_ROW = -1


class RowsById:
    """A sorted map from document ids to rows, made for ids that mostly arrive in order.

    One writer; readers need no lock, as they see the state before or after a write.
    """

    def __init__(self) -> None:
        self._ids: Int64s = np.empty(0, np.int64)
        self._rows: Int64s = np.empty(0, np.int64)
        self._state = (self._ids, self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._ids.nbytes + self._rows.nbytes

    @property
    def highest(self) -> int:
        """The highest id that was ever mapped; -1 without any."""
        known_ids = self._state[0]
        return int(known_ids[-1]) if known_ids.size else GONE

    def restore(self, ids: Int64s, rows: Int64s) -> None:
        """Map `ids` (n,), distinct, to `rows` (n,), and no others."""
        if not bool(np.all(ids[1:] > ids[:-1])):
            order = np.argsort(ids, kind="stable")
            ids, rows = ids[order], rows[order]
        self._ids, self._rows = ids, rows
        self._state = (ids, rows)

    def put(self, ids: Int64s, rows: Int64s) -> None:
        """Map `ids` (n,), distinct, to `rows` (n,); ids that are known get their new row."""
        known_ids, known_rows = self._state
        if ids.size == 1 and ids[0] > self.highest:
            self._append(ids, rows)
            return
        order = np.argsort(ids, kind="stable")
        ids, rows = ids[order], rows[order]
        at = np.searchsorted(known_ids, ids)
        if at.size and at[0] == known_ids.size:
            self._append(ids, rows)
            return
        known = np.zeros(ids.size, bool)
        inside = at < known_ids.size
        known[inside] = known_ids[at[inside]] == ids[inside]
        known_rows[at[known]] = rows[known]
        fresh = ~known
        if not fresh.any():
            return
        self._ids = np.insert(known_ids, at[fresh], ids[fresh])
        self._rows = np.insert(known_rows, at[fresh], rows[fresh])
        self._state = (self._ids, self._rows)

    def count(self, first: int, last: int) -> int:
        """Return how many ids from `first` to `last` were ever mapped."""
        start, end = np.searchsorted(self._state[0], [first, last + 1])
        return int(end - start)

    def get(self, ids: Int64s) -> Int64s:
        """Return the row of each id; -1 for unknown ones."""
        known_ids, known_rows = self._state
        if not known_ids.size:
            return np.full(ids.shape, GONE, np.int64)
        if ids.size == 1:  # One after the other is how most come; arrays take three times as long.
            place = int(known_ids.searchsorted(ids[0]))
            known = place < known_ids.size and known_ids[place] == ids[0]
            return known_rows[place : place + 1].copy() if known else np.full(1, GONE, np.int64)
        if known_ids[-1] - known_ids[0] + 1 == known_ids.size:  # Without gaps.
            at = ids - known_ids[0]
            at[(at < 0) | (at >= known_ids.size)] = 0
        else:
            at = known_ids.searchsorted(ids)
            at[at == known_ids.size] = 0
        rows: Int64s = np.where(known_ids[at] == ids, known_rows[at], GONE)
        return rows

    def _append(self, ids: Int64s, rows: Int64s) -> None:
        size = self._state[0].size
        end = size + ids.size
        if end > self._ids.size:
            capacity = max(end, size + size // 2, 64)
            self._ids, self._rows = (_grown(a[:size], capacity) for a in (self._ids, self._rows))
        self._ids[size:end] = ids
        self._rows[size:end] = rows
        self._state = (self._ids[:end], self._rows[:end])


def _grown(array: Int64s, capacity: int) -> Int64s:
    larger = np.empty(capacity, array.dtype)
    larger[: array.size] = array
    return larger


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
