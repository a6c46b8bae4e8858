"""One tenant's index: columns, vectors and words under one roof."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np

from mneme_server.common.errors import MnemeError, is_failure
from mneme_server.common.pages import parts
from mneme_server.engine.corpus.cache import AT_ONCE, CorpusChange, Steps
from mneme_server.engine.corpus.cold_search import ColdIndex
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.feed import FeedRow, Position, TouchedDocuments
from mneme_server.engine.corpus.ports import (
    NO_EVIDENCE,
    NO_HITS,
    CorpusColumns,
    CorpusSource,
    Hits,
    Matrix,
    Rows,
    Scores,
    Selection,
    VectorBatch,
    WordEvidence,
)
from mneme_server.engine.index.columns import LAYOUT
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.recovery import (
    check_model,
    checked,
    load,
    open_lexical,
    put_vectors,
)
from mneme_server.engine.index.searcher import Searcher
from mneme_server.engine.index.selection import Selections
from mneme_server.engine.index.settings import IndexLog, IndexSettings, NoLog
from mneme_server.engine.index.snapshot import SavedIndex, SnapshotFolder
from mneme_server.engine.index.upkeep import SHARED_WORKER, BackgroundWorker, Upkeep
from mneme_server.engine.index.words.lexical import LexicalIndex


class TenantIndex:
    """Implements `ManagedIndex`: opens the index under `folder`/index, catching up with `source`.

    Searches take no lock and never wait for additions, but for the commit of documents that were
    added before them. The first one by words after `IndexSettings.words_unused_s` opens the words'
    files again, and those at the same time wait for that.

    It then holds what there was at `position`, or more; who writes to the tenant while it opens has
    it catch up afterwards. What is damaged is reported to `log` and built again from `source`, and
    so is what is made `anew`. The parts `restored` failed in the index before this one: if one
    fails again, its copy on the disk is not to be relied on. A `clean` one keeps nothing of what
    was removed.

    Raises:
        FailedPrecondition: the vectors are those of another model (DIMENSION_MISMATCH).
    """

    def __init__(
        self,
        folder: Path,
        source: CorpusSource,
        model_id: str,
        dimensions: int,
        *,
        settings: IndexSettings | None = None,
        anew: Collection[IndexPart] = (),
        restored: Collection[IndexPart] = (),
        clean: bool = False,
        log: IndexLog | None = None,
        worker: BackgroundWorker = SHARED_WORKER,
    ) -> None:
        settings, log = settings or IndexSettings(), log or NoLog()
        self._again = partial(
            TenantIndex, folder, source, model_id, dimensions,
            settings=settings, log=log, worker=worker,
        )  # fmt: skip
        self._folder = folder / "index"
        self._source = source
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._failures = Failures(log)
        self._restored = frozenset(restored)
        self._position = source.head()
        self._dense = DenseIndex(dimensions, settings, self._lock)
        check_model(self._folder, model_id, dimensions)
        snapshot = SnapshotFolder(self._folder, model_id, dimensions, f"{LAYOUT}; {source.layout}")
        loaded = load(
            snapshot, source, self._dense, log, anew=IndexPart.VECTORS in anew, clean=clean
        )
        self._table = loaded.table
        self._selections = Selections(self._table)
        self._saved = SavedIndex(snapshot, self._lock, loaded)
        self._lexical = open_lexical(
            self._folder / "lexical", source, self._table, settings, log,
            position=self._position, anew=IndexPart.WORDS in anew,
        )  # fmt: skip
        self._searcher = Searcher(source, self._table, self._dense, self._lexical, settings)
        self._upkeep = Upkeep(
            snapshot=self.snapshot,
            dense=self._dense,
            lexical=self._lexical,
            settings=settings,
            failed=lambda error: self._failures.note(IndexPart.WORDS, error),
            log=log,
            worker=worker,
        )
        if loaded.new:
            self._upkeep.save_soon()  # Behind the call: who opens it waits for no disk.
        self._upkeep.vectors_changed(self._saved.lacks(self._position))
        if self._lexical.has_writer or self._lexical.waiting:
            self._upkeep.words_changed()
        self._upkeep.words_used()

    @property
    def columns(self) -> CorpusColumns:
        """The documents' attributes."""
        return self._table

    @property
    def position(self) -> Position:
        """The row of the feed up to which it holds what there is."""
        return self._position

    @property
    def newest_us(self) -> int:
        """The time of the newest document; 0 without documents."""
        return self._table.newest_us

    @property
    def mode(self) -> str:
        """How vectors are searched: "exact" or "hnsw"."""
        return self._dense.mode

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays, and of what tantivy holds."""
        return (
            self._table.nbytes
            + self._selections.nbytes
            + self._dense.nbytes
            + self._lexical.memory_bytes
        )

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vectors, and of the graphs that lead through them."""
        return self._dense.nbytes

    @property
    def document_count(self) -> int:
        """Documents that can be found."""
        return self._table.live_count

    @property
    def vector_count(self) -> int:
        """Vectors that are searched."""
        return self._dense.rows_held

    @property
    def partial(self) -> bool:
        """Whether a part failed: it may find less than there is until the index is built again."""
        return bool(self.failed_parts)

    @property
    def cold_index(self) -> ColdIndex | None:
        """See `ManagedIndex`."""
        return None

    @property
    def failed_parts(self) -> frozenset[IndexPart]:
        """The parts that failed: they must be built again."""
        return self._failures.parts

    def on_failure(self, told: Callable[[], object]) -> None:
        """Have `told` called, on any thread, whenever a part fails. It must not wait."""
        self._failures.on_failure(told)

    def select(self, filter_: DocumentFilter) -> Selection:
        """Return the rows that `filter_` lets through. The mask must not be written to."""
        return self._selections.of(filter_)

    def alike(self, row: int) -> Rows:
        """See `CorpusIndex`."""
        return self._selections.alike(row)

    def search_dense(
        self, query: Matrix, k: int, selection: Selection, *, exact: bool = True
    ) -> Hits:
        """See `CorpusIndex`. The scores of a large index come from 8-bit codes; with `exact` the
        best `IndexSettings.rescore` do not. Nothing is found when the vectors fail; see `partial`.
        """
        query = checked(query, self._dimensions)
        try:
            return self._searcher.dense(query, k, selection, exact=exact)
        except BaseException as error:
            self._failures.note(IndexPart.VECTORS, error)
            return NO_HITS

    def search_lexical(
        self, query: str, k: int, selection: Selection, *, context_weight: float = 0.0
    ) -> Hits:
        """See `CorpusIndex`. A query of more than `IndexSettings.query_terms` distinct terms is
        searched by the rarest of them. Nothing is found when the words fail; see `partial`.
        """
        try:
            return self._searcher.lexical(query, k, selection, context_weight)
        except BaseException as error:
            self._failures.note(IndexPart.WORDS, error)
            return NO_HITS
        finally:
            self._upkeep.words_used()

    def word_evidence(
        self, query: str, selection: Selection, identifiers: Sequence[str]
    ) -> WordEvidence:
        """See `CorpusIndex`. Nothing is known when the words fail; see `partial`."""
        try:
            return self._searcher.evidence(query, selection, identifiers)
        except BaseException as error:
            self._failures.note(IndexPart.WORDS, error)
            return NO_EVIDENCE
        finally:
            self._upkeep.words_used()

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """Return the cosine of `query` (d,) with each row's vector.

        NaN for rows without one. Computed from 8-bit codes where there is a graph.
        """
        return self._dense.similarities(checked(query, self._dimensions), rows)

    def each_similarity(self, query: Matrix, row: int) -> Scores:
        """See `CorpusIndex`."""
        return self._dense.each_similarity(checked(query, self._dimensions), row)

    def add_documents(self, documents: Sequence[Document]) -> None:
        """Add documents; they are found by their words from now on. Known ones are replaced."""
        if not documents:
            return
        with self._lock:
            fresh, reworded = self._table.add(documents)
            if fresh:
                self._lexical.add(fresh, replace=False)
            if reworded:
                self._lexical.add(reworded)
            self._saved.changed(documents=len(documents))
        self._upkeep.words_changed()

    def add_vectors(self, batch: VectorBatch) -> None:
        """Add vectors of documents that were added before; known ones are replaced.

        Vectors of documents that are unknown or removed are ignored.

        Raises:
            FailedPrecondition: the vectors have another length (DIMENSION_MISMATCH).
        """
        if not batch.seqs.size:
            return
        with self._lock:
            put_vectors(batch, self._table, self._dense)
            self._saved.changed(vectors=batch.seqs.size)
        self._upkeep.vectors_changed(self._saved.lacks(self._position))

    def remove(self, doc_ids: Sequence[int]) -> None:
        """Remove documents and their vectors. Unknown ids are ignored."""
        with self._lock:
            rows = self._table.remove(doc_ids)
            self._dense.remove(rows)
            self._lexical.remove(self._table.doc_id[rows].tolist())
            self._saved.changed(documents=rows.size)
        self._upkeep.vectors_changed(self._saved.lacks(self._position))
        self._upkeep.words_changed()

    def advance(self, position: Position) -> None:
        """Note that everything up to this row of the feed was applied."""
        with self._lock:
            self._position = position
        self._lexical.reached(position)
        self._upkeep.vectors_changed(self._saved.lacks(position))

    def applying(self, change: CorpusChange) -> Steps:
        """Return what applies a change that was just committed, the next after `position`."""
        steps = [
            *(partial(self.add_documents, part) for part in parts(change.saved, AT_ONCE)),
            *(partial(self.add_vectors, batch) for batch in change.vectors),
            # Last, so that what was replaced is there at every moment: as it was, or as it is.
            *(partial(self.remove, part) for part in parts(change.removed, AT_ONCE)),
        ]
        if change.position is not None:
            steps.append(partial(self.advance, change.position))
        return [*steps, self.keep_up]

    def catching_up(self, rows: Sequence[FeedRow]) -> Steps:
        """Return what makes up for rows after `position`: what they name is read again, as it is by
        now.

        Raises:
            LostPlace: they say that everything changed.
        """
        touched = TouchedDocuments()
        touched.take(rows)
        return [
            *(
                partial(self.read_again, part, touched.embedded)
                for part in parts(sorted(touched.there), AT_ONCE)
            ),
            *(partial(self.remove, part) for part in parts(sorted(touched.removed), AT_ONCE)),
            partial(self.advance, rows[-1].position),
            self.keep_up,
        ]

    def read_again(self, doc_ids: Sequence[int], embedded: Collection[int]) -> None:
        """Make documents what they are in the store, whatever a change left of them here.

        Of those that were `embedded` the vectors are read again, too.
        """
        documents = self._source.documents_of(doc_ids)
        there = [document.doc_id for document in documents]
        with self._lock:
            self._table.add(documents)
            self._lexical.add(documents)
            self._saved.changed(documents=len(documents))
            rows = self._table.rows_of(np.array(there, np.int64))
            wanted = set(self._table.doc_id[self._dense.missing(rows)].tolist())
        wanted.update(doc_id for doc_id in there if doc_id in embedded)
        self.add_vectors(self._source.vectors_of(sorted(wanted)))
        self.remove(sorted({*doc_ids}.difference(there)))
        self._upkeep.words_changed()

    def keep_up(self) -> None:
        """Commit words, here and now, when so many wait that the background must be behind."""
        self._lexical.keep_up()

    def snapshot(self) -> None:
        """Write attributes and vectors to the disk, if any changed since the last time.

        Raises:
            OSError: the disk is full or cannot be written; the snapshot before stays.
        """
        self._saved.save(self._table, self._dense, self._position)

    def stats(self) -> IndexStats:
        """Return sizes."""
        table = self._table
        return IndexStats(
            documents=table.live_count,
            rows=table.size,
            vectors=len(self._dense),
            mode=self._dense.mode,
            dense_waiting=self._dense.waiting,
            lexical_waiting=self._lexical.waiting,
            lexical_writer=self._lexical.has_writer,
            bytes=table.nbytes + self._dense.nbytes,
        )

    def close(self) -> None:
        """Stop background work, write what is not on the disk yet and release everything.

        Of an index that failed nothing is kept: it is built again when it is opened.
        """
        if not self.partial:
            self._upkeep.close()
            return
        self.abandon()
        self.discard()
        if IndexPart.WORDS in self._failures.parts:
            LexicalIndex.destroy(self._folder / "lexical")

    def abandon(self) -> None:
        """Stop background work and write nothing more: another index takes over the files.

        It may be searched and added to until it is discarded.
        """
        self._upkeep.abandon()

    def rebuilt(self, *, clean: bool = False) -> TenantIndex:
        """Open another index in the place of this one, which must be abandoned; a `clean` one keeps
        nothing of what was removed.

        Its failed parts come from their copies on the disk, whose checksums tell whether they are
        as they were written; those that failed before, too, are built anew.
        """
        failed = self._failures.parts
        anew = failed & self._restored
        if clean:
            anew = failed | {IndexPart.WORDS}
        return self._again(anew=anew, restored=failed - anew, clean=clean)

    def write(self) -> None:
        """Write everything to the disk, in the place of what lies there.

        Raises:
            OSError: the disk is full or cannot be written; what lay there stays.
        """
        self.snapshot()
        self._lexical.release_writer()

    def discard(self) -> None:
        """Release everything of an abandoned index; searches that are under way may end."""
        self._lexical.discard()

    def missed(self, error: BaseException) -> None:
        """Note that what was committed could not be applied."""
        self._failures.add(IndexPart.WORDS, error)


@dataclass(frozen=True, slots=True)
class IndexStats:
    """How large an index is. `rows` counts removed documents too; `mode` is "exact" or "hnsw";
    `dense_waiting` are vectors that lie in no graph yet."""

    documents: int
    rows: int
    vectors: int
    mode: str
    dense_waiting: int
    lexical_waiting: int
    lexical_writer: bool
    bytes: int


class Failures:
    """The parts of one index that failed, until another index takes its place.

    Args:
        log: told of each.
    """

    def __init__(self, log: IndexLog) -> None:
        self._log = log
        self._parts: set[IndexPart] = set()
        self._told: Callable[[], object] = _nobody

    @property
    def parts(self) -> frozenset[IndexPart]:
        """The parts that failed."""
        return frozenset(self._parts)

    def on_failure(self, told: Callable[[], object]) -> None:
        """Have `told` called, on any thread, whenever a part fails. It must not wait."""
        self._told = told

    def note(self, part: IndexPart, error: BaseException) -> None:
        """Note that a part failed and have the owner told, or raise what is no failure of it."""
        if isinstance(error, MnemeError) or not is_failure(error):
            raise error
        self.add(part, error)

    def add(self, part: IndexPart, error: BaseException) -> None:
        """Note that a part failed and have the owner told."""
        self._parts.add(part)
        self._log.warning("an index failed", part=part.value, error=repr(error))
        self._told()


class IndexPart(Enum):
    """A part of what an index is made of, as far as it can fail."""

    VECTORS = "vectors"
    WORDS = "words"


def _nobody() -> None:
    """Tell nobody."""
