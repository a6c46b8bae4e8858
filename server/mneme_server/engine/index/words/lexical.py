"""One tenant's words, kept with tantivy: BM25 over stems."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as altered
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from mneme_server.common.errors import is_failure
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import START, Position
from mneme_server.engine.index import scratch
from mneme_server.engine.index.settings import IndexLog, IndexSettings, NoLog
from mneme_server.engine.index.words.analysis import QueryWords, WordField, Words
from mneme_server.engine.index.words.bm25 import Statistics, WaitingDocument, score
from mneme_server.engine.index.words.files import (
    ID,
    LANGUAGE,
    LAYOUT,
    SavedWords,
    WordFiles,
    id_range_query,
    ids_query,
    kinds_query,
    raise_damaged,
    sessions_query,
    tantivy_document,
    tantivy_schema,
    term_query,
)
from mneme_server.engine.index.words.languages import STEMMERS

DocIds = NDArray[np.int64]

_WAITING_BYTES = 2_000
"""Of a document of usual length that waits for a commit."""
_FIRST_COPY = 1_000
"""Documents from which a copy is due though there was none. The next are due whenever there are
twice as many: all together write no more than the last one and as much again."""
_LISTED_AT_ONCE = 50_000
_LONGEST_QUERY = 100_000
_CONSIDERED_TERMS = 2_048
_NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


class LexicalIndex:
    """One tenant's words. Thread-safe; searches wait for nobody, but the first one after `rest` for
    tantivy's files to be opened again, which takes a millisecond or less.

    What is added waits in memory until it is committed: by `commit`, or by `keep_up` when much has
    come together, or a search finds so much that its ranking would not last. Searches see it at
    once. tantivy works in a folder of the process (`scratch`); `release_writer` writes a copy. What
    came after the last copy is gone after a crash; the owner compares `holds_exactly` and `doc_ids`
    with the database at opening.

    Args:
        folder: where the copy lies; made when it does not exist.
        settings: see `IndexSettings`.
        log: told of commits that failed; what they would have written keeps waiting.

    Raises:
        LexicalDamaged: the copy is not what was written.
    """

    def __init__(self, folder: Path, settings: IndexSettings, log: IndexLog | None = None) -> None:
        self._settings = settings
        self._log = log or NoLog()
        self._committing = threading.RLock()
        self._changing = threading.Lock()  # Guards what follows; never held for long.
        self._waiting: Mapping[int, WaitingDocument] = {}
        self._removed: set[int] = set()
        self._touched = self._searched = time.monotonic()
        self._discarded = False
        self._uncopied = self._documents = 0
        self._saved = SavedWords(folder, LAYOUT)
        self._folder = scratch.new_folder(self._saved.bytes)
        try:
            self._saved.restore(self._folder)
        except BaseException as error:
            self._give_up(error)
        self._search = WordSearch(settings.query_terms)
        self._words, self._schema = self._search.words, self._search.schema
        try:
            self._files = WordFiles(self._folder, self._schema, self._words.english)
            self._view: View | None = self._viewed()
        except BaseException as error:
            self._give_up(error)
        self._reached = self._committed = self._saved.position or START
        self._copied_documents = self._documents

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
        return len(self._waiting)

    @property
    def wants_commit(self) -> bool:
        """Whether what waits should be committed soon; see `IndexSettings`."""
        share = self._settings.commit_share * self._documents
        return self.waiting > min(self._settings.commit_from - 1, share)

    @property
    def has_writer(self) -> bool:
        """Whether the writer and its memory are held."""
        return self._files.has_writer

    @property
    def is_open(self) -> bool:
        """Whether tantivy has the files open, and a thread for them."""
        return self._files.is_open

    @property
    def memory_bytes(self) -> int:
        """Bytes of its files, which lie in memory where the system offers that, of the writer and
        of what waits."""
        return self._files.bytes + _WAITING_BYTES * self.waiting

    def idle_for(self) -> float:
        """Return the seconds since the last addition or removal."""
        return time.monotonic() - self._touched

    def unused_for(self) -> float:
        """Return the seconds since the last addition, removal or search."""
        return time.monotonic() - max(self._touched, self._searched)

    def add(self, documents: Iterable[Document], *, replace: bool = True) -> None:
        """Add documents; without `replace` none of them may be in the index."""
        added = {document.doc_id: WaitingDocument(document, self._words) for document in documents}
        with self._changing:
            self._touched = time.monotonic()
            if replace:
                self._removed |= added.keys()
            self._wait({**self._waiting, **added})

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
            self._wait({i: w for i, w in self._waiting.items() if i not in gone})

    def commit(self) -> None:
        """Write what is waiting to the disk.

        Raises:
            ValueError: tantivy could not; everything keeps waiting.
        """
        with self._committing:
            with self._changing:
                batch, removed = self._waiting, frozenset(self._removed)
                reached = self._reached
            if not batch and not removed:
                self._committed = reached
                return
            self._write(batch.values(), removed)
            self._uncopied += len(batch) + len(removed)
            self._committed = reached
            with self._changing:
                now = self._waiting
                self._waiting = {i: w for i, w in now.items() if w is not batch.get(i)}
                # Replaced or removed while it was written: to be deleted by the next commit.
                stale = {i for i, w in batch.items() if w is not now.get(i)}
                self._removed = (self._removed - removed) | stale
                self._view = self._viewed()

    @property
    def wants_copy(self) -> bool:
        """Whether so much was committed since the last copy that the next one is due."""
        rows = self._reached.number - (self.copied or START).number
        soon = max(_FIRST_COPY, self._copied_documents)
        return max(rows, self._uncopied) >= min(soon, self._settings.snapshot_after)

    def release_writer(self) -> None:
        """Commit, give the writer's memory back and write the copy.

        Raises:
            OSError: the copy cannot be written; the one before stays.
        """
        with self._committing:
            self.commit()
            if self._files.has_writer:
                self._files.release_writer()
                with self._changing:
                    self._view = self._viewed()
            if self._uncopied or self._committed != (self.copied or START):
                self._saved.save(self._folder, self._committed)
                self._uncopied, self._copied_documents = 0, self._documents

    def rest(self, unused_s: float) -> bool:
        """Let go of tantivy's files, and so of its thread, if there was no addition, removal or
        search for so many seconds, and there is no writer; return whether they are closed now.

        Searches that are under way keep theirs.
        """
        with self._committing, self._changing:
            if self._discarded or self.has_writer or self.unused_for() < unused_s:
                return False
            self._view = None
            self._files.close()
            return True

    def close(self) -> None:
        """Commit, write the copy and release everything."""
        try:
            self.release_writer()
        finally:
            self._remove()

    def discard(self) -> None:
        """Release everything; searches that are under way may end."""
        with self._committing:
            try:
                with self._changing:
                    self._opened()  # Whoever is about to search it can.
            except BaseException as error:
                if not is_failure(error):
                    raise
            self._remove()

    def holds_exactly(self, doc_ids: DocIds) -> bool:
        """Whether the committed index holds these documents and no others.

        Compares count, sum, least and greatest, which takes milliseconds for any size.
        """
        searcher = self._seen().searcher
        if searcher.num_docs != doc_ids.size:
            return False
        if not doc_ids.size:
            return True
        found = searcher.aggregate(Query.all_query(), {"ids": {"stats": {"field": ID}}})["ids"]
        return (
            int(found["count"]) == doc_ids.size
            and int(found["sum"]) == int(doc_ids.sum())
            and int(found["min"]) == int(doc_ids.min())
            and int(found["max"]) == int(doc_ids.max())
        )

    def doc_ids(self) -> DocIds:
        """Return the id of every committed document, in no particular order."""
        searcher = self._seen().searcher
        parts = [np.empty(0, np.int64)]
        for offset in range(0, searcher.num_docs, _LISTED_AT_ONCE):
            hits = searcher.search(
                Query.all_query(), _LISTED_AT_ONCE, count=False, offset=offset
            ).hits
            parts.append(ids_of(searcher, [address for _, address in hits]))
        return np.concatenate(parts)

    def parse(self, query: str, weights: Mapping[WordField, float]) -> ParsedQuery | None:
        """See `WordSearch.parse`. What the background would commit soon is committed first: how
        rare words are changes with it, and with that the scores of all documents."""
        if self.wants_commit:
            self._try_to_commit()
        return self._search.parse(self._seen(), query, weights)

    def terms(self, query: str) -> list[str]:
        """See `WordSearch.terms`."""
        return self._search.terms(self._seen(), query)

    def search_waiting(self, parsed: ParsedQuery) -> WordMatch:
        """See `WordSearch.search_waiting`."""
        return self._search.search_waiting(parsed)

    def search(self, parsed: ParsedQuery, limit: int, within: Query | None = None) -> WordMatch:
        """See `WordSearch.search`."""
        return self._search.search(parsed, limit, within)

    def tells(self, query: str) -> bool:
        """See `WordSearch.tells`."""
        return self._search.tells(self._seen(), query)

    def words_of(self, name: str) -> list[list[str]]:
        """Return the distinct words of a name, once for each way in which texts may have them."""
        return self._words.of_name(name, self._seen().languages())

    def with_all(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> WordMatch:
        """See `WordSearch.with_all`."""
        return self._search.with_all(parsed, terms, limit, within)

    def with_any(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> WordMatch:
        """See `WordSearch.with_any`."""
        return self._search.with_any(parsed, terms, limit, within)

    def these(self, doc_ids: Sequence[int]) -> Query:
        """Return what restricts a search to some documents; slow for more than hundreds."""
        return ids_query(self._schema, doc_ids)

    def between(self, first: int, last: int) -> Query:
        """Return what restricts a search to document ids from `first` to `last`."""
        return id_range_query(self._schema, first, last)

    def in_sessions(self, session_ids: Sequence[str]) -> Query:
        """Return what restricts a search to some sessions; slow for more than hundreds."""
        return sessions_query(self._schema, session_ids)

    def of_kinds(self, names: Sequence[str]) -> Query:
        """Return what restricts a search to some kinds of memory."""
        return kinds_query(self._schema, names)

    def _try_to_commit(self) -> None:
        try:
            self.commit()
        except ValueError as error:
            self._log.warning("words could not be committed", error=str(error))

    def _write(self, added: Iterable[WaitingDocument], removed: Iterable[int]) -> None:
        with self._changing:
            self._opened()  # Now, so that no search does it while they are written.
        self._files.write(removed, (tantivy_document(waiting, self._words) for waiting in added))

    def _wait(self, waiting: Mapping[int, WaitingDocument]) -> None:
        """Have others wait from now on. Holds `_changing`."""
        self._waiting = waiting
        if self._view is not None:
            self._view = altered(self._view, waiting=waiting)

    def _seen(self) -> View:
        """Return what a search sees now."""
        self._searched = time.monotonic()
        view = self._view
        if view is None:
            with self._changing:
                view = self._opened()
        return view

    def _opened(self) -> View:
        """Open the files, unless they are. Holds `_changing`.

        Raises:
            ValueError: they are not what was left there.
        """
        view = self._view
        if view is None:
            left = self._documents
            try:
                view = self._viewed()
                if self._documents != left:
                    raise ValueError(f"{self._folder} has {self._documents} documents, not {left}")
            except BaseException:
                self._documents = left  # Whoever tries again is to find the same.
                self._files.close()
                raise
            self._view = view
        return view

    def _viewed(self) -> View:
        searcher = self._files.searcher()
        self._documents = searcher.num_docs
        return View(
            searcher,
            Statistics(searcher, self._schema),
            frozenset(code for code in STEMMERS if searcher.doc_freq(LANGUAGE, code)),
            self._waiting,
        )

    def _remove(self) -> None:
        with self._committing, self._changing:
            self._discarded = True
            self._files.drop_writer()
            scratch.remove(self._folder)

    def _give_up(self, error: BaseException) -> NoReturn:
        scratch.remove(self._folder)
        raise_damaged(error)


class WordSearch:
    """Searches views of one index: for a query's terms, and the documents that have them.
    Thread-safe.

    Args:
        query_terms: of more terms than that the rarest are searched for.
    """

    def __init__(self, query_terms: int) -> None:
        self.words = Words()
        self.schema = tantivy_schema()
        self._query_terms = query_terms
        # Weak, as a view keeps its files open.
        self._last: tuple[weakref.ref[View], str, list[str]] | None = None

    def parse(
        self, view: View, query: str, weights: Mapping[WordField, float]
    ) -> ParsedQuery | None:
        """Return `query` as a disjunction of its terms in the weighted fields; None without terms.

        The text is never read as query syntax.
        """
        weights = {field: weight for field, weight in weights.items() if weight}
        last = self._last  # A call searches for the same words more than once.
        if last is not None and last[0]() is view and last[1] == query:
            terms = last[2]
        else:
            terms = self.terms(view, query)
            self._last = weakref.ref(view), query, terms
        clauses = [
            (Occur.Should, term_query(self.schema, field, term, weight))
            for term in terms
            for field, weight in weights.items()
        ]
        if not clauses:
            return None
        return ParsedQuery(terms, weights, Query.boolean_query(clauses), view)

    def terms(self, view: View, query: str) -> list[str]:
        """Return the distinct terms that `query` is searched by, in order.

        Stop words are dropped, unless there is nothing else. Of a word that texts in several
        languages may have in other forms, those count that occur; where the query's language is
        sure, others only if its own does not. Of more than `query_terms` terms the rarest that
        occur at all are kept, of the first two thousand.
        """
        languages = view.languages()
        query = query[:_LONGEST_QUERY]
        terms = _forms(view, self.words.asked(query, languages)) if languages else (
            self.words.told(query)
        )  # fmt: skip
        terms = list(dict.fromkeys(terms))
        if len(terms) <= self._query_terms:
            return terms
        terms = terms[:_CONSIDERED_TERMS]
        frequencies = [view.searcher.doc_freq(WordField.TEXT.value, term) for term in terms]
        rare = sorted((n, i) for i, n in enumerate(frequencies) if n)
        kept = sorted(i for _, i in rare[: self._query_terms])
        return [terms[i] for i in kept]

    def tells(self, view: View, query: str) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        return self.words.tells(query[:_LONGEST_QUERY], view.languages())

    def search_waiting(self, parsed: ParsedQuery) -> WordMatch:
        """Return all matching documents that are not committed yet, in no order."""
        view = parsed.view
        if not view.waiting:
            return WordMatch(*_NOTHING, exhausted=True)
        found = score(view.waiting.values(), parsed.terms, parsed.weights, view.statistics)
        return WordMatch(*found, exhausted=True)

    def search(self, parsed: ParsedQuery, limit: int, within: Query | None = None) -> WordMatch:
        """Return the best `limit` committed documents; those `within`, if given."""
        query = parsed.query
        if within is not None:
            query = Query.boolean_query(
                [(Occur.Must, Query.const_score_query(within, 0.0)), (Occur.Must, query)]
            )
        searcher = parsed.view.searcher
        hits = searcher.search(query, limit, count=False).hits
        exhausted = len(hits) < limit
        if not hits:
            return WordMatch(*_NOTHING, exhausted)
        found, addresses = zip(*hits, strict=True)
        doc_ids, scores = ids_of(searcher, addresses), np.array(found, np.float32)
        if parsed.view.waiting:  # Of a replaced document only the waiting form counts.
            newest = ~np.isin(doc_ids, list(parsed.view.waiting))
            doc_ids, scores = doc_ids[newest], scores[newest]
        return WordMatch(doc_ids, scores, exhausted)

    def with_all(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> WordMatch:
        """Return up to `limit` committed documents whose text holds all the terms."""
        clauses = [
            (Occur.Must, term_query(self.schema, WordField.TEXT, term, 1.0)) for term in terms
        ]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)

    def with_any(
        self, parsed: ParsedQuery, terms: Sequence[str], limit: int, within: Query | None
    ) -> WordMatch:
        """Return up to `limit` committed documents whose text holds some of the terms.

        The score is the sum of 2 ** place over the terms that it holds.
        """
        queries = [term_query(self.schema, WordField.TEXT, term, 1.0) for term in terms]
        clauses = [
            (Occur.Should, Query.const_score_query(query, 2.0**place))
            for place, query in enumerate(queries)
        ]
        return self.search(parsed._replace(query=Query.boolean_query(clauses)), limit, within)


class WordMatch(NamedTuple):
    """Documents that match, the best first: `doc_ids` (n,), BM25 `scores` (n,)."""

    doc_ids: DocIds
    scores: NDArray[np.float32]
    exhausted: bool
    """Whether there are no more than these."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """What a search sees: the committed documents, and those that wait for the next commit."""

    searcher: tantivy.Searcher
    statistics: Statistics
    committed_languages: frozenset[str]
    waiting: Mapping[int, WaitingDocument]

    def languages(self) -> frozenset[str]:
        """Return the languages besides English that some of them are in."""
        if not self.waiting:
            return self.committed_languages
        return self.committed_languages.union(
            document.language for document in self.waiting.values() if document.language
        )

    def has(self, word: str) -> bool:
        """Whether a text holds a word."""
        return self.searcher.doc_freq(WordField.TEXT.value, word) > 0 or any(
            word in document.counts(WordField.TEXT) for document in self.waiting.values()
        )


class ParsedQuery(NamedTuple):
    """A query's terms, and the documents they are searched in."""

    terms: list[str]
    weights: Mapping[WordField, float]
    query: Query
    view: View


def ids_of(searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress]) -> DocIds:
    """Return the ids of the documents at these places."""
    return np.array(searcher.fast_field_values(ID, list(addresses)), np.int64)


def _forms(view: View, asked: QueryWords) -> list[str]:
    """Return the forms that a query's words are searched by."""
    words = list(dict.fromkeys(asked.words))[:_CONSIDERED_TERMS]
    return [form for forms in words for form in _occurring(view, forms, sure=asked.sure)]


def _occurring(view: View, forms: Sequence[str], *, sure: bool) -> Sequence[str]:
    """Return the forms of a word that are searched for: one at least."""
    if len(forms) == 1 or (sure and view.has(forms[0])):
        return forms[:1]
    return [form for form in forms if view.has(form)] or forms[:1]
