"""Words with tantivy: BM25 over English stems."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import FieldType, Filter, Occur, Query, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.corpus.document import Document
from mneme_server.index.checksums import Checksums
from mneme_server.index.settings import IndexSettings
from mneme_server.index.stopwords import STOP_WORDS

DocIds = NDArray[np.int64]

_ID = "doc_id"
_ANALYZER = "mneme_en"
_LONGEST_TOKEN = 80
_LONGEST_QUERY = 100_000
_HEAP_BYTES = 15_000_000  # The least that tantivy accepts for a thread.
_LISTED_AT_ONCE = 50_000


class Field(Enum):
    """A searched field of a document."""

    TEXT = "text"
    """Its text."""
    CONTEXT = "context"
    """Its text and those just before it in its session."""


_WORDS: dict[Field, Callable[[Document], str]] = {
    Field.TEXT: lambda document: document.text,
    Field.CONTEXT: lambda document: (
        f"{document.context}\n{document.text}" if document.context else document.text
    ),
}

LAYOUT = f"1:{_ANALYZER}:" + ",".join(field.value for field in _WORDS)
"""Names what the files hold; an index of another layout is built again when it is opened."""


class Match(NamedTuple):
    """Documents that match, the best first: `doc_ids` (n,), BM25 `scores` (n,)."""

    doc_ids: DocIds
    scores: NDArray[np.float32]
    exhausted: bool
    """Whether there are no more than these."""


class LexicalDamaged(Exception):
    """The files cannot be used; the index must be rebuilt."""


class LexicalIndex:
    """One tenant's words, in a folder of their own. Thread-safe.

    What is added waits in memory until it is committed: before the next search, when enough has
    come together, or by `commit`. What was not committed is gone after a crash; the owner compares
    `holds_exactly` and `doc_ids` with the database at opening.

    Args:
        folder: where the index lives; made when it does not exist.
        settings: see `IndexSettings`.

    Raises:
        LexicalDamaged: the folder holds something that cannot be read.
    """

    def __init__(self, folder: Path, settings: IndexSettings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._writer: tantivy.IndexWriter | None = None
        self._added: dict[int, Document] = {}
        self._removed: set[int] = set()
        self._touched = time.monotonic()
        self._checksums = Checksums(folder, LAYOUT)
        self._plain = _analyzer(stop=False)
        self._stopped = _analyzer(stop=True)
        self._schema = _schema()
        self._index = self._open(folder)
        self._searcher = self._index.searcher()

    @staticmethod
    def destroy(folder: Path) -> None:
        """Delete the index in `folder`."""
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def waiting(self) -> int:
        """Documents that the next search will have to commit."""
        return len(self._added)

    @property
    def has_writer(self) -> bool:
        """Whether the writer and its memory are held."""
        return self._writer is not None

    def idle_for(self) -> float:
        """Return the seconds since the last addition or removal."""
        return time.monotonic() - self._touched

    def add(self, documents: Iterable[Document], *, replace: bool = True) -> None:
        """Add documents; without `replace` none of them may be in the index."""
        with self._lock:
            self._touched = time.monotonic()
            for document in documents:
                self._added[document.doc_id] = document
                if replace:
                    self._removed.add(document.doc_id)
            if len(self._added) >= self._settings.commit_after:
                self.commit()

    def remove(self, doc_ids: Iterable[int]) -> None:
        """Remove documents at the next commit; until then the owner's mask hides them."""
        with self._lock:
            self._touched = time.monotonic()
            for doc_id in doc_ids:
                self._added.pop(doc_id, None)
                self._removed.add(doc_id)

    def commit(self) -> None:
        """Write what is waiting to the disk and make it searchable."""
        with self._lock:
            if not self._added and not self._removed:
                return
            writer = self._open_writer()
            for doc_id in self._removed:
                writer.delete_documents_by_term(_ID, doc_id)
            for document in self._added.values():
                writer.add_document(_entry(document))
            writer.commit()
            self._index.reload()
            self._searcher = self._index.searcher()
            self._added = {}
            self._removed = set()

    def release_writer(self) -> None:
        """Commit, give the writer's memory back and note the files' checksums."""
        with self._lock:
            self.commit()
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None
                self._index.reload()
                self._searcher = self._index.searcher()
                self._checksums.write()

    def close(self) -> None:
        """Commit and release everything."""
        self.release_writer()

    def holds_exactly(self, doc_ids: DocIds) -> bool:
        """Whether the committed index holds these documents and no others.

        Compares count, sum, least and greatest, which takes milliseconds for any size.
        """
        if self._searcher.num_docs != doc_ids.size:
            return False
        if not doc_ids.size:
            return True
        stats = self._searcher.aggregate(Query.all_query(), {"ids": {"stats": {"field": _ID}}})
        found = stats["ids"]
        return (
            int(found["count"]) == doc_ids.size
            and int(found["sum"]) == int(doc_ids.sum())
            and int(found["min"]) == int(doc_ids.min())
            and int(found["max"]) == int(doc_ids.max())
        )

    def doc_ids(self) -> DocIds:
        """Return the id of every committed document, in no particular order."""
        parts = [np.empty(0, np.int64)]
        for offset in range(0, self._searcher.num_docs, _LISTED_AT_ONCE):
            hits = self._searcher.search(
                Query.all_query(), _LISTED_AT_ONCE, count=False, offset=offset
            ).hits
            parts.append(_ids(self._searcher, hits))
        return np.concatenate(parts)

    def terms(self, query: str) -> list[str]:
        """Return the distinct terms that `query` is searched by, in order.

        Stop words are dropped, unless there is nothing else. Of more than `query_terms` terms
        the rarest are kept that occur at all.
        """
        query = query[:_LONGEST_QUERY]
        terms = list(dict.fromkeys(self._stopped.analyze(query) or self._plain.analyze(query)))
        if len(terms) <= self._settings.query_terms:
            return terms
        searcher = self._searcher
        frequencies = [searcher.doc_freq(Field.TEXT.value, term) for term in terms]
        rare = sorted((n, i) for i, n in enumerate(frequencies) if n)
        kept = sorted(i for _, i in rare[: self._settings.query_terms])
        return [terms[i] for i in kept]

    def parsed(self, query: str, weights: Mapping[Field, float]) -> Query | None:
        """Return `query` as a disjunction of its terms in the weighted fields; None without terms.

        The text is never read as query syntax. What is waiting is committed first.
        """
        if self._added:
            self.commit()
        clauses = [
            (Occur.Should, self._term(field, term, weight))
            for term in self.terms(query)
            for field, weight in weights.items()
            if weight
        ]
        return Query.boolean_query(clauses) if clauses else None

    def search(self, query: Query, limit: int, among: Sequence[int] | None = None) -> Match:
        """Return the best `limit` documents, of the ids `among` if given."""
        if among is not None:
            query = _restricted(query, Query.term_set_query(self._schema, _ID, among))
        searcher = self._searcher
        hits = searcher.search(query, limit, count=False).hits
        scores = np.fromiter((score for score, _ in hits), np.float32, len(hits))
        return Match(_ids(searcher, hits), scores, exhausted=len(hits) < limit)

    def search_between(self, query: Query, limit: int, first: int, last: int) -> Match:
        """Return the best `limit` documents whose ids are from `first` to `last`."""
        between = Query.range_query(self._schema, _ID, FieldType.Integer, first, last)
        return self.search(_restricted(query, between), limit)

    def _term(self, field: Field, term: str, weight: float) -> Query:
        query = Query.term_query(self._schema, field.value, term, "freq")
        return query if weight == 1.0 else Query.boost_query(query, weight)

    def _open(self, folder: Path) -> tantivy.Index:
        try:
            self._checksums.verify()
            folder.mkdir(parents=True, exist_ok=True)
            index = tantivy.Index(self._schema, path=str(folder))
            index.register_tokenizer(_ANALYZER, self._plain)
            index.searcher().aggregate(Query.all_query(), {"n": {"stats": {"field": _ID}}})
        except (ValueError, OSError) as error:
            raise LexicalDamaged(str(error)) from error
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # Not an Exception, and not exported.
                raise LexicalDamaged(str(error)) from error
            raise
        return index

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
        return self._writer


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(_ID, indexed=True, fast=True)
    for field in Field:
        builder.add_text_field(field.value, tokenizer_name=_ANALYZER, index_option="freq")
    return builder.build()


def _analyzer(*, stop: bool) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    builder = builder.filter(Filter.remove_long(_LONGEST_TOKEN)).filter(Filter.lowercase())
    if stop:
        builder = builder.filter(Filter.custom_stopword(list(STOP_WORDS)))
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer("english")).build()


def _restricted(query: Query, allowed: Query) -> Query:
    """Return `query` for the `allowed` documents only, with the same scores."""
    return Query.boolean_query(
        [(Occur.Must, Query.const_score_query(allowed, 0.0)), (Occur.Must, query)]
    )


def _entry(document: Document) -> tantivy.Document:
    entry = tantivy.Document()
    entry.add_integer(_ID, document.doc_id)
    for field, words_of in _WORDS.items():
        entry.add_text(field.value, words_of(document))
    return entry


def _ids(searcher: tantivy.Searcher, hits: Sequence[tuple[object, tantivy.DocAddress]]) -> DocIds:
    addresses = [address for _, address in hits]
    values = searcher.fast_field_values(_ID, addresses)
    return np.fromiter((int(value or 0) for value in values), np.int64, len(values))
