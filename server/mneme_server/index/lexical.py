"""Words with tantivy: BM25 over English stems."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import FieldType, Occur, Query

from mneme_server.common.panics import is_failure
from mneme_server.corpus.document import Document
from mneme_server.corpus.feed import START, Position
from mneme_server.index import scratch
from mneme_server.index.fields import ANALYZER, WORDS_OF, Field, analyzer, spaced
from mneme_server.index.log import Log, NoLog
from mneme_server.index.saved import SavedWords
from mneme_server.index.settings import IndexSettings
from mneme_server.index.waiting import Statistics, WaitingDocument, score

DocIds = NDArray[np.int64]

_ID = "doc_id"
_SESSION = "session"
_KIND = "kind"
LAYOUT = f"5:{ANALYZER}:" + ",".join([*(field.value for field in Field), _SESSION, _KIND])
"""Names what the files hold; an index of another layout is built again when it is opened."""

_LONGEST_QUERY = 100_000
_HEAP_BYTES = 15_000_000  # The least that tantivy accepts for a thread.
_WRITER_BYTES = 3_000_000
"""Of a writer that is held, in fact; measured over a hundred of them. It takes more only while it
commits much."""
_WAITING_BYTES = 2_000
"""Of a document of usual length that waits for a commit."""
_LISTED_AT_ONCE = 50_000
_CONSIDERED_TERMS = 2_048
_SCORED_WAITING = 128


class Match(NamedTuple):
    """Documents that match, the best first: `doc_ids` (n,), BM25 `scores` (n,)."""

    doc_ids: DocIds
    scores: NDArray[np.float32]
    exhausted: bool
    """Whether there are no more than these."""


class _View(NamedTuple):
    """What a search sees: the committed documents, and those that wait for the next commit."""

    searcher: tantivy.Searcher
    statistics: Statistics
    waiting: Mapping[int, WaitingDocument]


class ParsedQuery(NamedTuple):
    """A query's terms, and the documents they are searched in."""

    terms: list[str]
    weights: Mapping[Field, float]
    query: Query
    view: _View


class LexicalDamaged(Exception):
    """The copy on the disk cannot be used; the index must be built again."""


class LexicalIndex:
    """One tenant's words. Thread-safe; searches wait for nobody.

    What is added waits in memory until it is committed: by `commit`, or by `keep_up` when much has
    come together. Searches see it at once. tantivy works in a folder of the process (`scratch`);
    `release_writer` writes a copy. What came after the last copy is gone after a crash; the owner
    compares `holds_exactly` and `doc_ids` with the database at opening.

    Args:
        folder: where the copy lies; made when it does not exist.
        settings: see `IndexSettings`.
        log: told of commits that failed; what they would have written keeps waiting.

    Raises:
        LexicalDamaged: the copy is not what was written.
    """

    def __init__(self, folder: Path, settings: IndexSettings, log: Log | None = None) -> None:
        self._settings = settings
        self._log = log or NoLog()
        self._committing = threading.RLock()
        self._changing = threading.Lock()  # Guards the three below; never held for long.
        self._removed: set[int] = set()
        self._touched = time.monotonic()
        self._writer: tantivy.IndexWriter | None = None
        self._uncopied = 0
        self._saved = SavedWords(folder, LAYOUT)
        self._words = analyzer()
        self._query_words = analyzer(stop=True)
        self._schema = _schema()
        self._folder = scratch.new_folder(self._saved.bytes)
        self._index = self._open()
        self._reached = self._committed = self._saved.position or START
        self._view = self._viewed({})

    @staticmethod
    def destroy(folder: Path) -> None:
        """Delete the copy in `folder`."""
        SavedWords(folder, LAYOUT).destroy()

    @property
    def copied(self) -> Position | None:
        """The row of the feed up to which the copy holds what there is; None without a copy."""
        return self._saved.position

    def reached(self, position: Position) -> None:
        """Note that everything up to this row of the feed was added and removed."""
        with self._changing:
            self._reached = position

    @property
    def waiting(self) -> int:
        """Documents that are not committed yet."""
        return len(self._view.waiting)

    @property
    def wants_commit(self) -> bool:
        """Whether what waits should be committed soon; see `IndexSettings`."""
        view, settings = self._view, self._settings
        share = settings.commit_share * view.searcher.num_docs
        return len(view.waiting) > min(settings.commit_from - 1, share)

    @property
    def has_writer(self) -> bool:
        """Whether the writer and its memory are held."""
        return self._writer is not None

    @property
    def memory_bytes(self) -> int:
        """Bytes of its files, which lie in memory where the system offers that, of the writer and
        of what waits."""
        files = 0
        with suppress(OSError):  # It is just being discarded.
            files = sum(entry.stat().st_size for entry in os.scandir(self._folder))
        writer = _WRITER_BYTES if self.has_writer else 0
        return files + writer + _WAITING_BYTES * self.waiting

    def idle_for(self) -> float:
        """Return the seconds since the last addition or removal."""
        return time.monotonic() - self._touched

    def add(self, documents: Iterable[Document], *, replace: bool = True) -> None:
        """Add documents; without `replace` none of them may be in the index."""
        added = {document.doc_id: WaitingDocument(document) for document in documents}
        with self._changing:
            self._touched = time.monotonic()
            if replace:
                self._removed |= added.keys()
            self._view = self._view._replace(waiting={**self._view.waiting, **added})

    def keep_up(self) -> None:
        """Commit if so much waits that the background must be behind; whoever adds calls it."""
        if self.waiting >= self._settings.commit_after:
            self._try_to_commit()

    def remove(self, doc_ids: Iterable[int]) -> None:
        """Remove documents at the next commit; until then the owner's mask hides them."""
        gone = set(doc_ids)
        with self._changing:
            self._touched = time.monotonic()
            self._removed |= gone
            left = {i: waiting for i, waiting in self._view.waiting.items() if i not in gone}
            self._view = self._view._replace(waiting=left)

    def commit(self) -> None:
        """Write what is waiting to the disk.

        Raises:
            ValueError: tantivy could not; everything keeps waiting.
        """
        with self._committing:
            with self._changing:
                batch, removed = self._view.waiting, frozenset(self._removed)
                reached = self._reached
            if not batch and not removed:
                self._committed = reached
                return
            try:
                self._write(batch.values(), removed)
            except BaseException:
                self._writer = None  # With it goes what it had taken but not committed.
                raise
            self._index.reload()
            self._uncopied += len(batch) + len(removed)
            self._committed = reached
            with self._changing:
                now = self._view.waiting
                left = {i: w for i, w in now.items() if w is not batch.get(i)}
                # Replaced or removed while it was written: to be deleted by the next commit.
                stale = {i for i, w in batch.items() if w is not now.get(i)}
                self._removed = (self._removed - removed) | stale
                self._view = self._viewed(left)

    @property
    def wants_copy(self) -> bool:
        """Whether so much was committed since the last copy that the next one is due."""
        rows = self._reached.number - (self.copied or START).number
        return max(rows, self._uncopied) >= self._settings.snapshot_after

    def release_writer(self) -> None:
        """Commit, give the writer's memory back and write the copy.

        Raises:
            OSError: the copy cannot be written; the one before stays.
        """
        with self._committing:
            self.commit()
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None
                self._index.reload()
                with self._changing:
                    self._view = self._viewed(self._view.waiting)
            if self._uncopied or self._committed != (self.copied or START):
                self._saved.save(self._folder, self._committed)
                self._uncopied = 0

    def close(self) -> None:
        """Commit, write the copy and release everything."""
        try:
            self.release_writer()
        finally:
            self.discard()

    def discard(self) -> None:
        """Release everything; searches that are under way may end."""
        with self._committing:
            self._writer = None
            scratch.remove(self._folder)

    def holds_exactly(self, doc_ids: DocIds) -> bool:
        """Whether the committed index holds these documents and no others.

        Compares count, sum, least and greatest, which takes milliseconds for any size.
        """
        searcher = self._view.searcher
        if searcher.num_docs != doc_ids.size:
            return False
        if not doc_ids.size:
            return True
        found = searcher.aggregate(Query.all_query(), {"ids": {"stats": {"field": _ID}}})["ids"]
        return (
            int(found["count"]) == doc_ids.size
            and int(found["sum"]) == int(doc_ids.sum())
            and int(found["min"]) == int(doc_ids.min())
            and int(found["max"]) == int(doc_ids.max())
        )

    def doc_ids(self) -> DocIds:
        """Return the id of every committed document, in no particular order."""
        searcher = self._view.searcher
        parts = [np.empty(0, np.int64)]
        for offset in range(0, searcher.num_docs, _LISTED_AT_ONCE):
            hits = searcher.search(
                Query.all_query(), _LISTED_AT_ONCE, count=False, offset=offset
            ).hits
            parts.append(_ids(searcher, hits))
        return np.concatenate(parts)

    def parse(self, query: str, weights: Mapping[Field, float]) -> ParsedQuery | None:
        """Return `query` as a disjunction of its terms in the weighted fields; None without terms.

        The text is never read as query syntax.
        """
        if self.waiting > _SCORED_WAITING:
            self._try_to_commit()
        view = self._view
        weights = {field: weight for field, weight in weights.items() if weight}
        terms = self.terms(query)
        clauses = [
            (Occur.Should, self._term(field, term, weight))
            for term in terms
            for field, weight in weights.items()
        ]
        if not clauses:
            return None
        return ParsedQuery(terms, weights, Query.boolean_query(clauses), view)

    def terms(self, query: str) -> list[str]:
        """Return the distinct terms that `query` is searched by, in order.

        Stop words are dropped, unless there is nothing else. Of more than `query_terms` terms
        the rarest that occur at all are kept, of the first two thousand.
        """
        query = spaced(query[:_LONGEST_QUERY])
        terms = list(dict.fromkeys(self._query_words.analyze(query) or self._words.analyze(query)))
        if len(terms) <= self._settings.query_terms:
            return terms
        searcher = self._view.searcher
        terms = terms[:_CONSIDERED_TERMS]
        frequencies = [searcher.doc_freq(Field.TEXT.value, term) for term in terms]
        rare = sorted((n, i) for i, n in enumerate(frequencies) if n)
        kept = sorted(i for _, i in rare[: self._settings.query_terms])
        return [terms[i] for i in kept]

    def search_waiting(self, parsed: ParsedQuery) -> Match:
        """Return all matching documents that are not committed yet, in no order."""
        view = parsed.view
        found = score(view.waiting.values(), parsed.terms, parsed.weights, view.statistics)
        return Match(*found, exhausted=True)

    def search(self, parsed: ParsedQuery, limit: int, within: Query | None = None) -> Match:
        """Return the best `limit` committed documents; those `within`, if given."""
        query = parsed.query
        if within is not None:
            query = Query.boolean_query(
                [(Occur.Must, Query.const_score_query(within, 0.0)), (Occur.Must, query)]
            )
        searcher = parsed.view.searcher
        hits = searcher.search(query, limit, count=False).hits
        doc_ids = _ids(searcher, hits)
        scores = np.fromiter((score for score, _ in hits), np.float32, len(hits))
        exhausted = len(hits) < limit
        if parsed.view.waiting:  # Of a replaced document only the waiting form counts.
            newest = ~np.isin(doc_ids, list(parsed.view.waiting))
            doc_ids, scores = doc_ids[newest], scores[newest]
        return Match(doc_ids, scores, exhausted)

    def tells(self, query: str) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        return bool(self._query_words.analyze(spaced(query[:_LONGEST_QUERY])))

    def words_of(self, name: str) -> list[str]:
        """Return the distinct words of a name, as they are searched."""
        return list(dict.fromkeys(self._words.analyze(spaced(name))))

    def with_all(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> Match:
        """Return up to `limit` committed documents whose text holds all the terms."""
        clauses = [(Occur.Must, self._term(Field.TEXT, term, 1.0)) for term in terms]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)

    def with_any(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> Match:
        """Return up to `limit` committed documents whose text holds some of the terms.

        The score is the sum of 2 ** place over the terms that it holds.
        """
        clauses = [
            (Occur.Should, Query.const_score_query(self._term(Field.TEXT, term, 1.0), 2.0**place))
            for place, term in enumerate(terms)
        ]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)

    def these(self, doc_ids: Sequence[int]) -> Query:
        """Return what restricts a search to some documents; slow for more than hundreds."""
        return Query.term_set_query(self._schema, _ID, doc_ids)

    def between(self, first: int, last: int) -> Query:
        """Return what restricts a search to document ids from `first` to `last`."""
        return Query.range_query(self._schema, _ID, FieldType.Integer, first, last)

    def in_sessions(self, session_ids: Sequence[str]) -> Query:
        """Return what restricts a search to some sessions; slow for more than hundreds."""
        return Query.term_set_query(self._schema, _SESSION, session_ids)

    def of_kinds(self, names: Sequence[str]) -> Query:
        """Return what restricts a search to some kinds of memory."""
        return Query.term_set_query(self._schema, _KIND, names)

    def _try_to_commit(self) -> None:
        try:
            self.commit()
        except ValueError as error:
            self._log.warning("words could not be committed", error=str(error))

    def _write(self, added: Iterable[WaitingDocument], removed: Iterable[int]) -> None:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
        for doc_id in removed:
            self._writer.delete_documents_by_term(_ID, doc_id)
        for waiting in added:
            self._writer.add_document(_entry(waiting.document))
        self._writer.commit()

    def _viewed(self, waiting: Mapping[int, WaitingDocument]) -> _View:
        searcher = self._index.searcher()
        return _View(searcher, Statistics(searcher, self._schema, self._words), waiting)

    def _term(self, field: Field, term: str, weight: float) -> Query:
        query = Query.term_query(self._schema, field.value, term, "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _open(self) -> tantivy.Index:
        try:
            self._saved.restore(self._folder)
            index = tantivy.Index(self._schema, path=str(self._folder))
            index.register_tokenizer(ANALYZER, self._words)
            index.searcher().aggregate(Query.all_query(), {"n": {"stats": {"field": _ID}}})
        except BaseException as error:
            scratch.remove(self._folder)
            if is_failure(error):
                raise LexicalDamaged(str(error)) from error
            raise
        return index


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(_ID, indexed=True, fast=True)
    builder.add_text_field(_SESSION, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(_KIND, tokenizer_name="raw", index_option="basic")
    for field in Field:
        builder.add_text_field(field.value, tokenizer_name=ANALYZER, index_option="freq")
    return builder.build()


def _entry(document: Document) -> tantivy.Document:
    # A number of another type than the schema's would kill the writer's thread at the next flush.
    entry = tantivy.Document()
    entry.add_integer(_ID, document.doc_id)
    entry.add_text(_KIND, document.kind.name)
    if document.session_id:
        entry.add_text(_SESSION, document.session_id)
    for field, words_of in WORDS_OF.items():
        entry.add_text(field.value, words_of(document))
    return entry


def _ids(searcher: tantivy.Searcher, hits: Sequence[tuple[object, tantivy.DocAddress]]) -> DocIds:
    addresses = [address for _, address in hits]
    values = searcher.fast_field_values(_ID, addresses)
    return np.array(values, np.int64)
