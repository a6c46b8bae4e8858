"""The attributes of documents as arrays, and filters over them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.corpus.document import Document, DocumentFilter
from mneme_server.corpus.kinds import MAX_KINDS
from mneme_server.corpus.ports import Rows, Selection
from mneme_server.index.codes import Codes, NameCodes
from mneme_server.index.ids import GONE, RowsById
from mneme_server.index.links import SessionLinks
from mneme_server.index.tags import TagPostings

_CACHED_SELECTIONS = 4
_NAME_BYTES = 200
"""Of a name in a dictionary of codes: its text, its number and its place."""
_NOBODY = -2
_EMPTY = -1

_DTYPES: dict[str, type] = {
    "doc_id": np.int64,
    "kind": np.uint8,
    "session": np.int32,
    "position": np.int64,
    "timestamp_us": np.int64,
    "importance": np.uint8,
    "words": np.int32,
    "asks": np.bool_,
    "spoken": np.bool_,
    "failed": np.bool_,
    "author": np.int32,
    "agent": np.int32,
    "user": np.int32,
    "project": np.int32,
    "category": np.int32,
    "type": np.int32,
    "name": np.int32,
    "role": np.int32,
    "severity": np.uint8,
    "shape": np.int64,
    "archived": np.bool_,
    "live": np.bool_,
    "fingerprint": np.int64,
}


# A name: one to three words, "Here are the details: ..." is none.
_LABEL = re.compile(r"([^\W\d_][\w.'\-]{0,40}(?: [^\W\d_][\w.'\-]{0,40}){0,2}):\s")


def author_of(document: Document) -> str:
    """Return the document's agent, else the leading label ("Ann: ...") of what is said, else ""."""
    if document.agent_id or not document.spoken:
        return document.agent_id
    label = _LABEL.match(document.text)
    return label[1] if label and not label[1][0].islower() else ""


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
    archived: NDArray[np.bool_]
    live: NDArray[np.bool_]
    fingerprint: NDArray[np.int64]
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
        self._tags = TagPostings()
        self._kinds, self._sessions = Codes(), Codes()
        self._agents, self._users = Codes(), Codes()
        self._projects, self._categories, self._authors = Codes(), Codes(), NameCodes()
        self._types, self._names, self._roles = Codes(), Codes(), Codes()
        self._session_words = np.zeros(1, np.int64)  # The last one is that of no session.
        self._version = 0
        self._selections: dict[DocumentFilter, tuple[int, Selection]] = {}
        self._newest = (-1, 0)

    def rows_of(self, doc_ids: NDArray[np.int64]) -> Rows:
        """Return the row of each document; -1 for ids that are unknown or removed."""
        return self._rows.get(doc_ids)

    @property
    def session_count(self) -> int:
        """How many sessions are numbered."""
        return len(self._sessions.names)

    def kind_names(self, numbers: Sequence[int]) -> list[str]:
        """Return the names of numbered kinds of memory."""
        return [self._kinds.names[number] for number in numbers]

    def session_ids(self, numbers: Sequence[int]) -> list[str]:
        """Return the ids of numbered sessions."""
        return [self._sessions.names[number] for number in numbers]

    def live_ids(self) -> NDArray[np.int64]:
        """Return the ids of all documents that are not removed, in no particular order."""
        size = self.size
        ids: NDArray[np.int64] = self.doc_id[:size][self.live[:size]]
        return ids

    @property
    def newest_us(self) -> int:
        """The time of the newest document; 0 without documents."""
        version, newest = self._newest
        if version != self._version:
            version, size = self._version, self.size
            times = self.timestamp_us[:size][self.live[:size]]
            newest = int(times.max()) if times.size else 0
            self._newest = (version, newest)
        return newest

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and about those of the names that stand in them as numbers."""
        columns = sum(int(getattr(self, name).nbytes) for name in _DTYPES)
        links = self.previous.nbytes + self.next.nbytes + self._session_words.nbytes
        names = (
            self._kinds, self._sessions, self._agents, self._users, self._projects,
            self._categories, self._authors, self._types, self._names, self._roles,
        )  # fmt: skip
        return (
            columns + links + self._rows.nbytes + self._tags.nbytes
            + _NAME_BYTES * sum(map(len, names))
        )  # fmt: skip

    def add(
        self, documents: Sequence[Document], *, link: bool = True
    ) -> tuple[list[Document], list[Document]]:
        """Add documents, or replace the attributes of known ones.

        Return the new ones, and the known ones whose text is another than before. Without `link`
        the neighbours in the sessions are left to one `relink` afterwards, which is faster for
        many.
        """
        distinct = {document.doc_id: document for document in documents}
        batch = list(distinct.values())
        rows = self.rows_of(np.fromiter(distinct, np.int64, len(distinct)))
        known = [(int(row), d) for row, d in zip(rows, batch, strict=True) if row != GONE]
        fresh = [d for row, d in zip(rows, batch, strict=True) if row == GONE]
        reworded = []
        for row, document in known:
            if self.fingerprint[row] != hash(document.text):
                reworded.append(document)
            self._replace(row, document)
        if fresh:
            self._append(fresh, link=link)
        self._version += 1
        return fresh, reworded

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
        self.live_count -= rows.size
        self._count_words(rows, -1)
        for row in rows.tolist():
            self._links.remove(row, int(self.session[row]))
            self._tags.put(row, ())
        self._rows.put(ids, np.full(ids.size, GONE, np.int64))
        self._version += 1
        return rows

    def role_number(self, role: str) -> int:
        """Return the number of a role in `role`; one that no row has when nobody has it."""
        return self._roles.get(role, _NOBODY)

    def session_words(self, sessions: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how many words each of the numbered sessions holds; 0 for -1, no session."""
        return self._session_words[sessions]

    def authors_named_by(self, words: Collection[str]) -> list[int]:
        """Return the numbers of the authors whose names have one of these words, in lower case."""
        return self._authors.named_by(words)

    def select(self, filter_: DocumentFilter) -> Selection:
        """Return the rows that `filter_` lets through; the mask must not be written to."""
        version = self._version
        cached = self._selections.get(filter_)
        if cached is not None and cached[0] == version:
            return cached[1]
        mask = self._mask(filter_)
        count = int(np.count_nonzero(mask))
        selection = Selection(mask=mask, count=count, everything=count == self.live_count)
        if len(self._selections) >= _CACHED_SELECTIONS:
            self._selections = {}
        self._selections[filter_] = (version, selection)
        return selection

    def _mask(self, wanted: DocumentFilter) -> NDArray[np.bool_]:
        size = self.size
        mask = self.live[:size].copy()
        if wanted.kinds:
            allowed = np.zeros(MAX_KINDS, bool)
            stored = (self._kinds.get(kind.name, _NOBODY) for kind in wanted.kinds)
            allowed[[code for code in stored if code != _NOBODY]] = True
            mask &= allowed[self.kind[:size]]
        self._by_names(mask, wanted)
        if wanted.author:
            mask &= self._said_by(wanted.author, size)
        if wanted.importance:
            mask &= self.importance[:size] == wanted.importance
        if wanted.min_severity:
            mask &= self.severity[:size] >= wanted.min_severity
        if wanted.start_us is not None:
            mask &= self.timestamp_us[:size] >= wanted.start_us
        if wanted.end_us is not None:
            mask &= self.timestamp_us[:size] < wanted.end_us
        if not wanted.include_archived:
            mask &= ~self.archived[:size]
        for tag in wanted.tags:
            carried = np.zeros(size, bool)
            rows = self._tags.rows(tag)
            carried[rows[rows < size]] = True
            mask &= carried
        return mask

    def _by_names(self, mask: NDArray[np.bool_], wanted: DocumentFilter) -> None:
        """Take out of the mask what bears other names than those that are wanted."""
        size = len(mask)
        for known, column, value, shared in (
            (self._sessions, self.session, wanted.session_id, False),
            (self._agents, self.agent, wanted.agent_id, wanted.shared),
            (self._users, self.user, wanted.user_id, False),
            (self._projects, self.project, wanted.project, wanted.shared),
            (self._names, self.name, wanted.name, False),
        ):
            if value:
                fits: NDArray[np.bool_] = column[:size] == known.get(value, _NOBODY)
                if shared:
                    fits |= column[:size] == _EMPTY
                mask &= fits
        for known, column, values in (
            (self._categories, self.category, wanted.categories or None),
            (self._types, self.type, wanted.types or None),
            (self._sessions, self.session, wanted.session_ids),
        ):
            if values is not None:
                mask &= np.isin(column[:size], [known.get(name, _NOBODY) for name in values])

    def _said_by(self, author: str, size: int) -> NDArray[np.bool_]:
        """Return which rows have this author, in any case: by role, or by name."""
        by_role: NDArray[np.bool_] = self.role[:size] == self._roles.get(author.lower(), _NOBODY)
        by_name: NDArray[np.bool_] = np.isin(self.author[:size], self._authors.spelled(author))
        return by_role | by_name

    def _append(self, documents: list[Document], *, link: bool) -> None:
        start, end = self.size, self.size + len(documents)
        self._reserve(end)
        self._write(slice(start, end), documents)
        self._count_words(np.arange(start, end), 1)
        self.live[start:end] = True
        for row, document in enumerate(documents, start):
            if document.tags:
                self._tags.put(row, document.tags)
        self._rows.put(self.doc_id[start:end], np.arange(start, end, dtype=np.int64))
        if link:
            for row in range(start, end):
                self._links.insert(row, int(self.session[row]), self.position, self.doc_id)
        self.live_count += len(documents)
        self.size = end

    def _replace(self, row: int, document: Document) -> None:
        place = (self.session[row], self.position[row])
        session = int(self.session[row])
        this = np.array([row])
        self._count_words(this, -1)
        self._write(slice(row, row + 1), [document])
        self._count_words(this, 1)
        self._tags.put(row, document.tags)
        if (self.session[row], self.position[row]) != place:
            self._links.remove(row, session)
            self._links.insert(row, int(self.session[row]), self.position, self.doc_id)

    def _write(self, rows: slice, documents: list[Document]) -> None:
        self.doc_id[rows] = [d.doc_id for d in documents]
        self.kind[rows] = [self._kinds[d.kind.name] for d in documents]
        self.session[rows] = [self._sessions[d.session_id] for d in documents]
        self.position[rows] = [d.position for d in documents]
        self.timestamp_us[rows] = [d.timestamp_us for d in documents]
        self.importance[rows] = [d.importance for d in documents]
        self.words[rows] = [len(d.text.split()) for d in documents]
        self.asks[rows] = ["?" in d.text for d in documents]
        self.spoken[rows] = [d.spoken for d in documents]
        self.failed[rows] = [d.failed for d in documents]
        self.author[rows] = [self._authors[author_of(d)] for d in documents]
        self.agent[rows] = [self._agents[d.agent_id] for d in documents]
        self.user[rows] = [self._users[d.user_id] for d in documents]
        self.project[rows] = [self._projects[d.project] for d in documents]
        self.category[rows] = [self._categories[d.category] for d in documents]
        self.type[rows] = [self._types[d.type] for d in documents]
        self.name[rows] = [self._names[d.name] for d in documents]
        self.role[rows] = [self._roles[d.role] for d in documents]
        self.severity[rows] = [d.severity for d in documents]
        self.shape[rows] = [d.shape for d in documents]
        self.archived[rows] = [d.archived for d in documents]
        self.fingerprint[rows] = [hash(d.text) for d in documents]

    def _count_words(self, rows: Rows, sign: int) -> None:
        """Add the words of rows to those of their sessions, or take them off."""
        missing = self.session_count + 1 - len(self._session_words)
        if missing > 0:
            more = np.zeros(missing + len(self._session_words) // 2, np.int64)
            self._session_words = np.concatenate([self._session_words, more])
        rows = rows[self.session[rows] >= 0]
        np.add.at(self._session_words, self.session[rows], sign * self.words[rows])

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
