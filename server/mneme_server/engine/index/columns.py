"""The attributes of documents as arrays, and filters over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.attributes import HELD
from mneme_server.engine.corpus.document import MAX_KINDS, Document
from mneme_server.engine.corpus.ports import Rows
from mneme_server.engine.index.coding import AnyCodes, Coding, fingerprint
from mneme_server.engine.index.rows import GONE, RowsById, SessionLinks

ReadChunk: TypeAlias = Callable[[int, Sequence[NDArray[Any]]], object]
_NAME_BYTES = 200
"""Of a name in a dictionary of codes: its text, its number and its place."""
_NOBODY = -2
_DERIVED = {
    "words": "int32", "asks": "bool", "spoken": "bool", "failed": "bool", "author": "int32",
    "live": "bool", "fingerprint": "int64",
}  # fmt: skip
"""What is known of a document besides its attributes."""
_DTYPES = {held: attribute.dtype for held, attribute in HELD.items()} | _DERIVED
COLUMNS = tuple(_DTYPES)
LAYOUT = "1:" + ",".join(f"{name} {np.dtype(dtype)}" for name, dtype in _DTYPES.items())
"""Names what the columns hold, and how: a copy of another layout cannot be used. Raise the number
when a column means something else than before."""
CHUNK = 1 << 17
"""Rows of a part of the columns that is copied as a whole, if something in it changed."""
_CHANGES = 256
"""Changes whose rows are remembered, so that what depends on them need not look at all rows."""
_CHANGED_ROWS = 20_000
"""Rows that changed, beyond which it is as well to look at all."""
_NO_ROWS: Rows = np.empty(0, np.int64)
_SPARSE = 1 / 8
"""Removed documents among the rows of a copy, from which their rows are given up."""


class DocumentTable:
    """Every document of a tenant, a row each. Implements `CorpusColumns`.

    One writer at a time (the caller's lock); readers need none. Arrays only ever grow by being
    replaced and `size` is raised last, so a row below `size` can be read from any array taken
    after `size`. Rows of removed documents stay until the index is opened again, with
    `live` false.
    """

    doc_id: NDArray[np.int64]
    kind: NDArray[np.uint8]
    session: NDArray[np.int32]
    position: NDArray[np.int64]
    timestamp_us: NDArray[np.int64]
    importance: NDArray[np.uint8]
    words: NDArray[np.int32]
    asks: NDArray[np.bool_]
    spoken: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    author: NDArray[np.int32]
    agent: NDArray[np.int32]
    user: NDArray[np.int32]
    project: NDArray[np.int32]
    category: NDArray[np.int32]
    type: NDArray[np.int32]
    name: NDArray[np.int32]
    role: NDArray[np.int32]
    severity: NDArray[np.uint8]
    shape: NDArray[np.int64]
    value: NDArray[np.float64]
    archived: NDArray[np.bool_]
    live: NDArray[np.bool_]
    fingerprint: NDArray[np.int64]
    tags: NDArray[np.int32]
    previous: NDArray[np.int32]
    next: NDArray[np.int32]

    def __init__(self) -> None:
        self.size = 0
        self.live_count = 0
        self._capacity = 0
        for name, dtype in _DTYPES.items():
            setattr(self, name, np.empty(0, dtype))
        self._links = SessionLinks()
        self.previous, self.next = self._links.previous, self._links.next
        self._rows = RowsById()
        self._coding = Coding()
        self.codes: Mapping[str, AnyCodes] = self._coding.of_columns
        """What the numbers in columns stand for, by the columns' names."""
        self._counts = DocumentCounts()
        self.version = 0
        """Another one after every change."""
        self._changes: deque[tuple[int, Rows]] = deque(maxlen=_CHANGES)
        self._newest = Newest(self)
        self._touched: set[int] = set()

    def rows_of(self, doc_ids: NDArray[np.int64]) -> Rows:
        """Return the row of each document; -1 for ids that are unknown or removed."""
        return self._rows.get(doc_ids)

    def names_of(self, column: str, numbers: Sequence[int]) -> list[str]:
        """Return what numbers in a column of names stand for."""
        names: Sequence[Any] = self.codes[column].names
        return [names[number] for number in numbers]

    def live_ids(self) -> NDArray[np.int64]:
        """Return the ids of all documents that are not removed, in no particular order."""
        size = self.size
        ids: NDArray[np.int64] = self.doc_id[:size][self.live[:size]]
        return ids

    @property
    def newest_us(self) -> int:
        """The time of the newest document; 0 without documents."""
        return self._newest.time_us()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and about those of the names that stand in them as numbers."""
        columns = sum(int(getattr(self, name).nbytes) for name in _DTYPES)
        links = self.previous.nbytes + self.next.nbytes + self._counts.nbytes
        names = _NAME_BYTES * sum(map(len, self.codes.values()))
        return columns + links + self._rows.nbytes + names

    def add(
        self, documents: Sequence[Document], *, link: bool = True
    ) -> tuple[list[Document], list[Document]]:
        """Add documents, or replace the attributes of known ones.

        Return the new ones, and the known ones whose text is another than before. Without `link`
        the neighbours in the sessions are left to one `relink` afterwards, which is faster for
        many.
        """
        distinct = {document.doc_id: document for document in documents}
        fresh, known = self._told_apart(distinct)
        reworded = []
        for row, document in known:
            if self.fingerprint[row] != fingerprint(document.text):
                reworded.append(document)
            self._replace(row, document)
        first = self.size
        if fresh:
            self._append(fresh, link=link)
        changed = np.arange(first, self.size)
        if known:
            changed = np.concatenate([[row for row, _ in known], changed])
        self._changed(changed)
        return fresh, reworded

    def _told_apart(
        self, distinct: Mapping[int, Document]
    ) -> tuple[list[Document], list[tuple[int, Document]]]:
        """Return those that are new, and those that are known, with their rows."""
        batch = list(distinct.values())
        if not distinct or min(distinct) > self._rows.highest:  # As what was just recorded.
            return batch, []
        rows = self.rows_of(np.fromiter(distinct, np.int64, len(distinct))).tolist()
        given = list(zip(rows, batch, strict=True))
        return [d for row, d in given if row == GONE], [pair for pair in given if pair[0] != GONE]

    def export(self) -> CopiedColumns:
        """Return what changed since the last time, for a copy of the columns.

        Call it with the lock; what it returns does not change.
        """
        chunks, self._touched = self._touched, set()
        return CopiedColumns(
            rows=self.size,
            chunks={
                chunk: [
                    getattr(self, name)[chunk * CHUNK : min((chunk + 1) * CHUNK, self.size)].copy()
                    for name in _DTYPES
                ]
                for chunk in sorted(chunks)
            },
            names={name: codes.names[:] for name, codes in self.codes.items()},
        )

    def touch(self, chunks: Iterable[int] | None = None) -> None:
        """Have the next copy hold these chunks again; None for all. Call it with the lock."""
        self._touched.update(range(-(-self.size // CHUNK)) if chunks is None else chunks)

    def restore(self, rows: int, names: Mapping[str, list[Any]], read: ReadChunk) -> None:
        """Fill the empty table with what `export` gave, chunk by chunk.

        Args:
            rows: how many there are.
            names: those of the numbers in the columns.
            read: reads a chunk into its columns.

        Raises:
            ValueError: the numbers in the columns have no names.
        """
        self._reserve(rows)
        for chunk, start in enumerate(range(0, rows, CHUNK)):
            end = min(start + CHUNK, rows)
            read(chunk, [getattr(self, name)[start:end] for name in _DTYPES])
        for name, codes in self.codes.items():
            column = getattr(self, name)[:rows]
            if rows and not -1 <= int(column.min()) <= int(column.max()) < len(names[name]):
                raise ValueError(f"there are no names for the numbers in {name}")
            codes.restore(names[name])
        self.size = rows
        self._give_up_removed()
        self.version += 1
        live = np.flatnonzero(self.live[: self.size])
        self.live_count = live.size
        self._rows.restore(self.doc_id[live], live)
        self._count(live, 1)
        self.relink()

    def _give_up_removed(self) -> None:
        kept = np.flatnonzero(self.live[: self.size])
        if self.size - kept.size <= self.size * _SPARSE:
            return
        for name in _DTYPES:
            column = getattr(self, name)
            column[: kept.size] = column[kept]
        self.size = kept.size
        self.touch()

    def changed_since(self, version: int) -> Rows | None:
        """Return the rows that came, changed or went since then, some more than once; None where
        that is not known any more, or they are many."""
        recent = list(self._changes)  # Others may follow while this looks at them.
        if (recent[0][0] if recent else self.version + 1) > version + 1:
            return None
        changed = [rows for at, rows in recent if at > version]
        if sum(rows.size for rows in changed) > _CHANGED_ROWS:
            return None
        return np.concatenate([_NO_ROWS, *changed])

    def _changed(self, rows: Rows) -> None:
        """Note that rows came, changed or went, when all is done."""
        self._changes.append((self.version + 1, rows))
        self.version += 1

    def relink(self) -> None:
        """Find every document's neighbours in its session anew."""
        self._links.rebuild(self.session[: self.size], self.position, self.doc_id, self.live)
        self.previous, self.next = self._links.previous, self._links.next

    def remove(self, doc_ids: Sequence[int]) -> Rows:
        """Remove documents; return the rows they had. Unknown ids are ignored."""
        ids = np.unique(np.fromiter(doc_ids, np.int64, len(doc_ids)))
        rows: Rows = self.rows_of(ids)
        known = rows != GONE
        ids, rows = ids[known], rows[known]
        if not rows.size:
            return rows
        self.live[rows] = False
        self.touch(np.unique(rows // CHUNK).tolist())
        self.live_count -= rows.size
        self._count(rows, -1)
        for row in rows.tolist():
            self._links.remove(row, int(self.session[row]))
        self._rows.put(ids, np.full(ids.size, GONE, np.int64))
        self._changed(rows)
        return rows

    def role_number(self, role: str) -> int:
        """Return the number of a role in `role`; one that no row has when nobody has it."""
        return self._coding.roles.get(role, _NOBODY)

    def authors_spelled(self, name: str) -> list[int]:
        """Return the numbers of the authors with this name, in any case."""
        return self._coding.authors.spelled(name)

    def tag_sets_holding(self, tags: Collection[str]) -> list[int]:
        """Return the numbers of the sets of tags that hold all of these."""
        return self._coding.tags.holding(tags)

    def tag_sets_with(self, tags: Collection[str]) -> list[int]:
        """Return the numbers of the sets of tags that hold one of these."""
        return sorted({number for tag in tags for number in self._coding.tags.holding([tag])})

    def session_words(self, sessions: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how many words each of the numbered sessions holds; 0 for -1, no session."""
        return self._counts.words(sessions)

    def documents_in(self, sessions: NDArray[np.int64]) -> int:
        """Return how many documents numbered sessions hold."""
        return self._counts.in_sessions(sessions)

    def documents_of(self, kinds: NDArray[np.int64]) -> int:
        """Return how many documents are of numbered kinds."""
        return self._counts.of_kinds(kinds)

    def documents_between(self, first: int, last: int) -> int:
        """Return how many ids from `first` to `last` are known, or were."""
        return self._rows.count(first, last)

    def authors_named_by(self, words: Collection[str]) -> list[int]:
        """Return the numbers of the authors whose names have one of these words, in lower case."""
        return self._coding.authors.named_by(words)

    def _append(self, documents: list[Document], *, link: bool) -> None:
        start, end = self.size, self.size + len(documents)
        self._reserve(end)
        self._write(start, documents)
        self._count(slice(start, end), 1)
        self.live[start:end] = True
        self._rows.put(self.doc_id[start:end], np.arange(start, end, dtype=np.int64))
        if link:
            for row in range(start, end):
                self._links.insert(row, int(self.session[row]), self.position, self.doc_id)
        self.live_count += len(documents)
        self.size = end

    def _replace(self, row: int, document: Document) -> None:
        place = (self.session[row], self.position[row])
        session = int(self.session[row])
        this = slice(row, row + 1)
        self._count(this, -1)
        self._write(row, [document])
        self._count(this, 1)
        if (self.session[row], self.position[row]) != place:
            self._links.remove(row, session)
            self._links.insert(row, int(self.session[row]), self.position, self.doc_id)

    def _write(self, first: int, documents: Sequence[Document]) -> None:
        """Write documents into the rows from `first` on."""
        end = first + len(documents)
        self.touch(range(first // CHUNK, (end - 1) // CHUNK + 1))
        for name, values in self._coding.values(documents).items():
            column = getattr(self, name)
            if len(values) == 1:
                column[first] = values[0]  # An array of one would take ten times as long.
            else:
                column[first:end] = values

    def _count(self, rows: Rows | slice, sign: int) -> None:
        """Add rows to what is known of their kinds and sessions, or take them off."""
        self._counts.reserve(len(self._coding.sessions))
        self._counts.add(self.kind[rows], self.session[rows], self.words[rows], sign)

    def _reserve(self, rows: int) -> None:
        if rows <= self._capacity:
            return
        self._capacity = max(rows, self._capacity + self._capacity // 2, 64)
        for name, dtype in _DTYPES.items():
            larger: NDArray[Any] = np.zeros(self._capacity, dtype)
            larger[: self.size] = getattr(self, name)[: self.size]
            setattr(self, name, larger)
        self._links.reserve(self._capacity)
        self.previous, self.next = self._links.previous, self._links.next


@dataclass(frozen=True, slots=True)
class CopiedColumns:
    """Columns for a copy: how many `rows` there are, the columns of each of the `chunks` that
    changed, and the names that their numbers stand for, by the columns' names."""

    rows: int
    chunks: Mapping[int, Sequence[NDArray[Any]]]
    names: Mapping[str, list[Any]]


class DocumentCounts:
    """How many documents there are of each kind and in each session, and how many words these hold,
    by the numbers of kinds and sessions; -1 stands for no session.

    One writer; readers need no lock.
    """

    def __init__(self) -> None:
        self._kinds = np.zeros(MAX_KINDS, np.int64)
        self._sessions = np.zeros(1, np.int64)
        self._words = np.zeros(1, np.int64)  # The last one is that of no session.

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._sessions.nbytes + self._words.nbytes

    def of_kinds(self, kinds: NDArray[np.int64]) -> int:
        """Return how many documents are of these kinds."""
        return int(self._kinds[kinds].sum())

    def in_sessions(self, sessions: NDArray[np.int64]) -> int:
        """Return how many documents these sessions hold."""
        return int(self._sessions[sessions].sum())

    def words(self, sessions: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how many words each of these sessions holds; 0 for no session."""
        return self._words[sessions]

    def reserve(self, sessions: int) -> None:
        """Make room for so many sessions."""
        missing = sessions - len(self._words)
        if missing > 0:
            more = np.zeros(missing + len(self._words) // 2, np.int64)
            self._words = np.concatenate([self._words, more])
            self._sessions = np.concatenate([self._sessions, more])

    def add(
        self,
        kinds: NDArray[np.uint8],
        sessions: NDArray[np.int32],
        words: NDArray[np.int32],
        sign: int,
    ) -> None:
        """Count documents (n,), or with a sign of -1 take them off."""
        if kinds.size == 1:  # As nearly always; the rest takes ten times as long.
            self._kinds[kinds[0]] += sign
            if sessions[0] >= 0:
                self._words[sessions[0]] += sign * words[0]
                self._sessions[sessions[0]] += sign
            return
        np.add.at(self._kinds, kinds, sign)
        within = sessions >= 0
        np.add.at(self._words, sessions[within], sign * words[within])
        np.add.at(self._sessions, sessions[within], sign)


class Newest:
    """The time of the newest document of a table, known without looking at all of them. Readers
    need no lock."""

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._known = (-1, 0, 0)  # Of which version, of how many rows, and the time.

    def time_us(self) -> int:
        """Return it, in microseconds since 1970; 0 without documents."""
        table = self._table
        version, rows, newest = self._known
        if version == table.version:
            return newest
        version_now, size = table.version, table.size
        changed = table.changed_since(version)
        if changed is not None:
            since = self._newest_of(changed)
            # Of rows that were there before, one that was the newest may have gone.
            if since < newest and bool((changed < rows).any()):
                changed = None
            newest = max(since, newest)
        if changed is None:
            newest = self._newest_of(slice(size))
        self._known = (version_now, size, newest)
        return newest

    def _newest_of(self, rows: Rows | slice) -> int:
        times = self._table.timestamp_us[rows][self._table.live[rows]]
        return int(times.max()) if times.size else 0
