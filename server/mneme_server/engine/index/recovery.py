"""The recovery of an index from its files, corrected and completed by what the database holds."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.errors import DataLoss, FailedPrecondition, Reason
from mneme_server.common.pages import parts
from mneme_server.engine.corpus.feed import START, LostPlace, Position, TouchedDocuments
from mneme_server.engine.corpus.ports import CorpusSource, Matrix, VectorBatch
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.dense import DenseIndex, run_starts
from mneme_server.engine.index.rows import NO_ROW
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.index.snapshot import (
    LoadedIndex,
    Snapshot,
    SnapshotDamaged,
    SnapshotFolder,
    read_manifest,
)
from mneme_server.engine.index.words.files import LexicalDamaged
from mneme_server.engine.index.words.lexical import LexicalIndex

_DOCUMENTS_PAGE = 10_000
_VECTORS_PAGE = 4_000
_REPAIR_PAGE = 1_000
_ROWS_PAGE = 1_000


def mismatch(found: str, wanted: str) -> FailedPrecondition:
    """Return the error for vectors that the running model cannot be compared with."""
    return FailedPrecondition(
        f"The index holds vectors of {found}, but the server runs {wanted}. Start it with the "
        "previous embedder, or embed everything again with: mneme-server reindex",
        reason=Reason.DIMENSION_MISMATCH,
        metadata={"found": found, "wanted": wanted},
    )


def checked(query: Matrix, dimensions: int) -> Matrix:
    """Return a question's vector (d,) as the index takes it.

    Raises:
        FailedPrecondition: it has another length (DIMENSION_MISMATCH).
    """
    if query.shape != (dimensions,):
        raise mismatch(f"{dimensions} dimensions", f"a model of {query.shape[-1]}")
    return np.ascontiguousarray(query, np.float32)


def check_model(folder: Path, model_id: str, dimensions: int) -> None:
    """Compare the snapshot's model with the one that runs.

    Raises:
        FailedPrecondition: it is another one.
    """
    try:
        manifest = read_manifest(folder)
    except SnapshotDamaged:
        return
    if manifest is None or not {"model_id", "dimensions"} <= manifest.keys():
        return
    found = (manifest["model_id"], manifest["dimensions"])
    if found != (model_id, dimensions):
        raise mismatch(f"{found[0]} ({found[1]} dimensions)", f"{model_id} ({dimensions})")


def load_documents(source: CorpusSource, table: DocumentTable) -> None:
    """Fill the empty `table`."""
    last = 0
    while page := source.documents_after(last, _DOCUMENTS_PAGE):
        table.add(page, link=False)
        last = page[-1].doc_id
    table.relink()


def load(
    folder: SnapshotFolder,
    source: CorpusSource,
    dense: DenseIndex,
    log: IndexLog,
    *,
    anew: bool = False,
    clean: bool = False,
) -> LoadedIndex:
    """Fill a table and `dense` from the snapshot, unless `anew`, and from what the store has beyond
    it. `clean`, nothing of what was removed is kept, as it is otherwise for a while."""
    state = None if anew else _read_snapshot(folder, log)
    touched = None if state is None else touched_after(source, state.position, "vectors", log)
    table = None
    if state is not None and touched is not None and not clean:
        table = _restore_columns(folder, state, log)
    documents = 0
    if table is None or touched is None:
        table = DocumentTable()
        load_documents(source, table)
        documents = max(1, table.live_count)  # The copy holds others, also where there are none.
    else:
        documents = _catch_up(source, table, touched)
    if state is None or touched is None:
        vectors = _load_all_vectors(source, table, dense)
        return LoadedIndex(table, START, documents, vectors, new=True)
    dense.restore(state.graphs, table.rows_of(state.doc_ids), state.tail)
    vectors = 0
    for part in parts(sorted(touched.embedded), _REPAIR_PAGE):
        batch = source.vectors_of(part)
        put_vectors(batch, table, dense)
        vectors += batch.seqs.size
    if clean:
        dense.purge()
    return LoadedIndex(table, state.position, documents, vectors, new=False)


def _catch_up(source: CorpusSource, table: DocumentTable, touched: TouchedDocuments) -> int:
    """Make the documents that the feed names what they are in the store; return how many."""
    named = sorted(touched.saved | touched.removed)
    for part in parts(named, _REPAIR_PAGE):
        found = source.documents_of(part)
        table.add(found)
        table.remove(sorted({*part}.difference(document.doc_id for document in found)))
    return len(named)


def _load_all_vectors(source: CorpusSource, table: DocumentTable, dense: DenseIndex) -> int:
    last, loaded = 0, 0
    while (batch := source.vectors_after(last, _VECTORS_PAGE)).seqs.size:
        put_vectors(batch, table, dense)
        last = int(batch.seqs[-1])
        loaded += batch.seqs.size
    return loaded


def touched_after(
    source: CorpusSource, place: Position, what: str, log: IndexLog
) -> TouchedDocuments | None:
    """Return what the feed names after `place`; None when it no longer tells."""
    touched = TouchedDocuments()
    try:
        while rows := source.changes_after(place, _ROWS_PAGE):
            touched.take(rows)
            place = rows[-1].position
    except (LostPlace, DataLoss) as error:
        log.info("an index is built again, the feed is another", part=what, why=str(error))
        return None
    return touched


def put_vectors(batch: VectorBatch, table: DocumentTable, dense: DenseIndex) -> None:
    """Add the vectors of documents that `table` knows; the last ones of a document count.

    Raises:
        FailedPrecondition: they have another length than the index.
    """
    if not batch.doc_ids.size:
        return
    if batch.vectors.shape[1] != dense.dimensions:
        raise mismatch(f"{batch.vectors.shape[1]} dimensions", f"a model of {dense.dimensions}")
    rows = table.rows_of(batch.doc_ids)
    if rows[0] != NO_ROW and (rows.size == 1 or bool((rows[1:] > rows[:-1]).all())):
        dense.add(rows, batch.vectors)  # Each is known and distinct, as what is new mostly is.
        return
    order = np.lexsort((batch.seqs, rows))  # It is stable: a document's vectors keep their order.
    order = order[rows[order] != NO_ROW]
    if not order.size:
        return
    ordered, seqs = rows[order], batch.seqs[order]
    starts = run_starts(ordered)
    last = np.repeat(np.maximum.reduceat(seqs, starts), np.diff(starts, append=ordered.size))
    order = order[seqs == last]
    dense.add(rows[order], batch.vectors[order])


def open_lexical(
    folder: Path,
    source: CorpusSource,
    table: DocumentTable,
    settings: IndexSettings,
    log: IndexLog,
    *,
    position: Position,
    anew: bool = False,
) -> LexicalIndex:
    """Open the words, `anew` without the copy, and make them hold exactly what `table` holds, which
    is what there was at `position`."""
    if anew:
        LexicalIndex.destroy(folder)
    try:
        lexical = LexicalIndex(folder, settings, log)
    except LexicalDamaged as error:
        log.warning("the copy of the words cannot be used, building it again", error=str(error))
        LexicalIndex.destroy(folder)
        lexical = LexicalIndex(folder, settings, log)
    live = table.live_ids()
    try:
        if lexical.copied is not None and not _words_caught_up(source, lexical, table, live, log):
            lexical.discard()
            LexicalIndex.destroy(folder)
            lexical = LexicalIndex(folder, settings, log)
        if lexical.copied is None:
            _put_words(source, lexical, live, replace=False)
        lexical.reached(position)
        if lexical.wants_commit_first:
            lexical.commit()  # The copy can wait, those who ask cannot.
    except BaseException:
        lexical.discard()  # The store cannot be read, or building was stopped.
        raise
    return lexical


def _words_caught_up(
    source: CorpusSource,
    lexical: LexicalIndex,
    table: DocumentTable,
    live: NDArray[np.int64],
    log: IndexLog,
) -> bool:
    """Bring words from a copy to what `table` holds; tell whether that was possible."""
    assert lexical.copied is not None
    touched = touched_after(source, lexical.copied, "words", log)
    if touched is None:
        return False
    named = _ids(touched.saved | touched.removed)
    known = table.rows_of(named) != NO_ROW
    saved = np.fromiter(map(touched.saved.__contains__, named.tolist()), bool, named.size)
    _put_words(source, lexical, named[known & saved], replace=True)
    lexical.remove(named[~known].tolist())
    return lexical.holds_exactly(live)


def _put_words(
    source: CorpusSource, lexical: LexicalIndex, doc_ids: NDArray[np.int64], *, replace: bool
) -> None:
    for part in parts(np.sort(doc_ids).tolist(), _REPAIR_PAGE):
        lexical.add(source.documents_of(part), replace=replace)
        lexical.keep_up()


def _ids(numbers: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64, len(numbers))


def _read_snapshot(folder: SnapshotFolder, log: IndexLog) -> Snapshot | None:
    try:
        return folder.read()
    except SnapshotDamaged as error:
        log.warning("the index's copy cannot be used, building it again", error=str(error))
        return None


def _restore_columns(
    folder: SnapshotFolder, state: Snapshot, log: IndexLog
) -> DocumentTable | None:
    if not state.columns:
        log.info("documents are made of something else now, and read from the database")
        return None
    try:
        return folder.restore_columns()
    except SnapshotDamaged as error:
        log.warning(
            "a part of the index's copy cannot be used, reading the documents again",
            error=str(error),
        )
        return None
