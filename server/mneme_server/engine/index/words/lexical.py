"""One tenant's words, kept with tantivy: BM25 over stems."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from mneme_server.engine.index.words.bm25 import Statistics, WordStatistics
from mneme_server.engine.index.words.counted import CountedWords, WaitingDocument
from mneme_server.engine.index.words.files import (
    ID,
    LANGUAGE,
    LAYOUT,
    SavedWords,
    WordFiles,
    counts_in,
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
_FEW, _SEARCHED_S = 8, 10.0
"""So many documents are counted as they come, where somebody has searched within so many seconds:
50 µs each."""
_FIRST_COPY = 1_000
"""Documents from which a copy is due though there was none. The next are due whenever there are
twice as many: all together write no more than the last one and as much again."""
_LISTED_AT_ONCE = 50_000
_LONGEST_QUERY = 100_000
_CONSIDERED_TERMS = 2_048
_EACH_KNOWN = 100
"""Bytes of an entry of a dictionary, and of the object that it holds."""
_NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


class LexicalIndex:
    """One tenant's words. Thread-safe; searches wait for nobody, but the first one after `rest` for
    tantivy's files to be opened again, which takes a millisecond or less.

    What is added waits in memory until it is committed: by `commit`, or by `keep_up` when much has
    come together. Searches see it at once. Of a tenant with few documents all are counted in memory
    (`IndexSettings.counted_limit`), and no score depends on what is committed; of another one how
    rare a word is follows from what is, and a search commits what would change that. tantivy works
    in a folder of the process (`scratch`); `release_writer` writes a copy. What came after the last
    copy is gone after a crash; the owner adds it again from the database, and compares
    `holds_exactly`.

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
        self._waiting_characters = 0
        self._removed: frozenset[int] = frozenset()
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
    def wants_commit_first(self) -> bool:
        """Whether what waits should be committed before anybody searches: how rare words are
        changes with it, and with that the scores of all documents, unless all are counted."""
        return self.wants_commit and not self._seen().holds_all

    @property
    def wants_commit(self) -> bool:
        """Whether what waits should be committed soon; see `IndexSettings`."""
        if self._waiting_characters >= self._settings.commit_characters:
            return True
        changes = max(self.waiting, len(self._removed))
        if self._documents + self.waiting <= self._settings.counted_limit:
            return changes >= self._settings.commit_from
        share = self._settings.commit_share * self._documents
        return changes > min(self._settings.commit_from - 1, share)

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
        view = self._view
        counted = 0 if view is None else view.counted_bytes
        return self._files.bytes + _WAITING_BYTES * self.waiting + counted

    def idle_for(self) -> float:
        """Return the seconds since the last addition or removal."""
        return time.monotonic() - self._touched

    def unused_for(self) -> float:
        """Return the seconds since the last addition, removal or search."""
        return time.monotonic() - max(self._touched, self._searched)

    def add(self, documents: Iterable[Document], *, replace: bool = True) -> None:
        """Add documents; without `replace` none of them may be in the index."""
        added = {document.doc_id: WaitingDocument(document, self._words) for document in documents}
        now = time.monotonic()
        if len(added) <= _FEW and now - self._searched < _SEARCHED_S:
            for one in added.values():
                one.count()  # Else the next search would have to count all that came since.
        with self._changing:
            self._touched = now
            if replace:
                self._removed = self._removed.union(added)
            self._waiting_characters += sum(
                len(one.document.text) + len(one.document.context) for one in added.values()
            )
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
            self._removed = self._removed.union(gone)
            self._wait({i: w for i, w in self._waiting.items() if i not in gone})

    def commit(self) -> None:
        """Write what is waiting to the disk.

        Raises:
            ValueError: tantivy could not; everything keeps waiting.
        """
        with self._committing:
            with self._changing:
                batch, removed, reached = self._waiting, self._removed, self._reached
                characters = self._waiting_characters
            if not batch and not removed:
                self._committed = reached
                return
            few = self._documents + len(batch) - len(removed) <= self._settings.counted_limit
            self._write(batch.values(), removed, counted=few)
            self._uncopied += len(batch) + len(removed)
            self._committed = reached
            with self._changing:
                now = self._waiting
                self._waiting = {i: w for i, w in now.items() if w is not batch.get(i)}
                # Replaced or removed while it was written: to be deleted by the next commit.
                stale = {i for i, w in batch.items() if w is not now.get(i)}
                self._removed = (self._removed - removed) | stale
                self._waiting_characters -= characters
                self._view = self._viewed(self._view, batch, removed)

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
                    self._view = self._viewed(self._view)
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
        """Whether the index holds these documents and no others, with what waits.

        Compares count, sum, least and greatest, which takes milliseconds for any size.
        """
        view = self._seen()
        waiting = np.fromiter(view.waiting, np.int64, len(view.waiting))
        among = Query.all_query()
        if changed := view.removed.union(view.waiting):
            others = (Occur.MustNot, ids_query(self._schema, sorted(changed)))
            among = Query.boolean_query([(Occur.Must, among), others])
        found = view.searcher.aggregate(among, {"ids": {"stats": {"field": ID}}})["ids"]
        count = int(found["count"])
        if count + waiting.size != doc_ids.size:
            return False
        if not doc_ids.size:
            return True
        ends = [int(end) for end in (found["min"], found["max"]) if count]
        ends += [int(waiting.min()), int(waiting.max())] if waiting.size else []
        return (
            int(found["sum"] or 0) + int(waiting.sum()) == int(doc_ids.sum())
            and min(ends) == int(doc_ids.min())
            and max(ends) == int(doc_ids.max())
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
        """See `WordSearch.parse`."""
        if self.wants_commit_first:
            self._try_to_commit()
        return self._search.parse(self._seen(), query, weights)

    def terms(self, query: str) -> list[str]:
        """See `WordSearch.terms`."""
        return self._search.terms(self._seen(), query)

    def search_counted(self, parsed: ParsedQuery) -> WordMatch:
        """See `WordSearch.search_counted`."""
        return self._search.search_counted(parsed)

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

    def _write(
        self, added: Iterable[WaitingDocument], removed: Iterable[int], *, counted: bool
    ) -> None:
        with self._changing:
            self._opened()  # Now, so that no search does it while they are written.
        made = (tantivy_document(waiting, self._words, counted=counted) for waiting in added)
        self._files.write(removed, made)

    def _wait(self, waiting: Mapping[int, WaitingDocument]) -> None:
        """Have others wait from now on. Holds `_changing`."""
        self._waiting = waiting
        if not waiting:
            self._waiting_characters = 0
        if self._view is not None:
            self._view = View(self._view.committed, waiting, self._removed)

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

    def _viewed(
        self,
        before: View | None = None,
        added: Mapping[int, WaitingDocument] | None = None,
        removed: Collection[int] = (),
    ) -> View:
        """Return what a search sees now. Holds `_changing`.

        Args:
            before: what it saw before these were `added` and `removed`, if that is known.
        """
        searcher = self._files.searcher()
        self._documents = searcher.num_docs
        counts = None if before is None else before.committed.counts_with(added or {}, removed)
        committed = Committed(searcher, self._schema, self._settings.counted_limit, counts)
        return View(committed, self._waiting, self._removed)

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
        frequencies = [view.statistics.frequency(WordField.TEXT, term) for term in terms]
        rare = sorted((n, i) for i, n in enumerate(frequencies) if n)
        kept = sorted(i for _, i in rare[: self._query_terms])
        return [terms[i] for i in kept]

    def tells(self, view: View, query: str) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        return self.words.tells(query[:_LONGEST_QUERY], view.languages())

    def search_counted(self, parsed: ParsedQuery) -> WordMatch:
        """Return all matching documents of those that are counted in memory, in no order."""
        view = parsed.view
        found = view.counted.score(parsed.terms, parsed.weights, view.statistics)
        return WordMatch(*found, exhausted=True)

    def search(self, parsed: ParsedQuery, limit: int, within: Query | None = None) -> WordMatch:
        """Return the best `limit` of the committed documents that are not counted in memory; those
        `within`, if given."""
        view, query = parsed.view, parsed.query
        if view.holds_all:
            return WordMatch(*_NOTHING, exhausted=True)
        if within is not None:
            query = Query.boolean_query(
                [(Occur.Must, Query.const_score_query(within, 0.0)), (Occur.Must, query)]
            )
        hits = view.searcher.search(query, limit, count=False).hits
        exhausted = len(hits) < limit
        if not hits:
            return WordMatch(*_NOTHING, exhausted)
        found, addresses = zip(*hits, strict=True)
        doc_ids, scores = ids_of(view.searcher, addresses), np.array(found, np.float32)
        if view.waiting:  # Of a replaced document only the waiting form counts.
            newest = ~np.isin(doc_ids, list(view.waiting))
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


class Committed:
    """The committed documents, and how often each has its words, which is read when it is first
    asked for.

    Args:
        searcher: of them.
        schema: of their index.
        counted_limit: of more they are not counted.
        counts: how often each has its words, where that is known.
    """

    def __init__(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        counted_limit: int,
        counts: Mapping[int, bytes] | None = None,
    ) -> None:
        self.searcher = searcher
        self.statistics = Statistics(searcher, schema)
        self.languages = frozenset(code for code in STEMMERS if searcher.doc_freq(LANGUAGE, code))
        self.counted_limit = counted_limit
        self._known = counts
        self._read = counts is not None
        self._bytes: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the `counts`, if they are in memory."""
        known = self._known
        if known is None:
            return 0
        if self._bytes is None:
            self._bytes = sum(map(len, known.values())) + _EACH_KNOWN * len(known)
        return self._bytes

    def counts(self) -> Mapping[int, bytes] | None:
        """Return how often each has its words, by its id; None where it was not written of all of
        them."""
        if not self._read:
            self._known = counts_in(self.searcher)
            self._read = True
        return self._known

    def counts_with(
        self, added: Mapping[int, WaitingDocument], removed: Collection[int]
    ) -> Mapping[int, bytes] | None:
        """Return what `counts` are after these changes, if that is known."""
        known = self._known
        if known is None or len(known) + len(added) - len(removed) > self.counted_limit:
            return None
        changed = set(removed).union(added)
        left = {doc_id: counts for doc_id, counts in known.items() if doc_id not in changed}
        if len(left) + len(added) > self.counted_limit:
            return None
        return left | {doc_id: waiting.counts for doc_id, waiting in added.items()}


class View:
    """What a search sees: the committed documents, and those that wait for the next commit.

    Args:
        committed: those that are committed.
        waiting: those that wait, by their ids; they replace those that are committed.
        removed: what is no more of what is committed, and other ids.
    """

    def __init__(
        self,
        committed: Committed,
        waiting: Mapping[int, WaitingDocument],
        removed: frozenset[int],
    ) -> None:
        self.committed = committed
        self.waiting = waiting
        self.removed = removed
        self._counted: CountedWords | None = None
        self._holds_all: bool | None = None

    @property
    def searcher(self) -> tantivy.Searcher:
        """Searches the committed documents."""
        return self.committed.searcher

    @property
    def holds_all(self) -> bool:
        """Whether all documents are `counted`."""
        if self._holds_all is None:
            self._count()
        return bool(self._holds_all)

    @property
    def counted(self) -> CountedWords:
        """The documents that are counted in memory: all, or those that wait."""
        return self._counted or self._count()

    @property
    def counted_bytes(self) -> int:
        """Bytes of what is counted, as far as it was asked for."""
        arrays = 0 if self._counted is None else self._counted.nbytes
        return arrays + self.committed.nbytes

    @property
    def statistics(self) -> WordStatistics:
        """What scores are computed with: those of all documents, or of the committed ones."""
        alone = self.holds_all or not self.searcher.num_docs
        return self.counted if alone else self.committed.statistics

    def languages(self) -> frozenset[str]:
        """Return the languages besides English that some of them are in."""
        if self.holds_all:
            return self.counted.languages
        return self.committed.languages | self.counted.languages

    def has(self, word: str) -> bool:
        """Whether a text holds a word."""
        return (
            self.counted.frequency(WordField.TEXT, word) > 0
            or self.statistics.frequency(WordField.TEXT, word) > 0
        )

    def _count(self) -> CountedWords:
        waiting = {doc_id: one.counts for doc_id, one in self.waiting.items()}
        committed = self._committed_counts()
        self._holds_all = committed is not None
        self._counted = counted = CountedWords((committed or {}) | waiting)
        return counted

    def _committed_counts(self) -> dict[int, bytes] | None:
        """Return how often the committed documents that still are have their words; None where
        there are too many to count all."""
        limit, waiting = self.committed.counted_limit, len(self.waiting)
        if self.searcher.num_docs + waiting - len(self.removed) > limit:
            return None
        committed = self.committed.counts()
        if committed is None:
            return None
        changed = self.removed.union(self.waiting)
        left = {doc_id: counts for doc_id, counts in committed.items() if doc_id not in changed}
        return None if len(left) + waiting > limit else left


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
