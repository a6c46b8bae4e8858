"""Opening: what the files hold, corrected and completed by what the database holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.corpus.ports import CorpusSource, VectorBatch
from mneme_server.index import snapshot as snapshots
from mneme_server.index.columns import DocumentTable
from mneme_server.index.dense import NO_ROW, DenseIndex
from mneme_server.index.lexical import LexicalDamaged, LexicalIndex
from mneme_server.index.log import Log
from mneme_server.index.settings import IndexSettings

_DOCUMENTS_PAGE = 10_000
_VECTORS_PAGE = 4_000
_REPAIR_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """`unsaved` counts the vectors that the snapshot does not hold; `new` without a snapshot."""

    last_seq: int
    unsaved: int
    new: bool


def mismatch(found: str, wanted: str) -> FailedPrecondition:
    """Return the error for vectors that the running model cannot be compared with."""
    return FailedPrecondition(
        f"The index holds vectors of {found}, but the server runs {wanted}. Start it with the "
        "previous embedder, or embed everything again with: mneme-server reindex",
        reason=Reason.DIMENSION_MISMATCH,
        metadata={"found": found, "wanted": wanted},
    )


def check_model(folder: Path, model_id: str, dimensions: int) -> None:
    """Compare the snapshot's model with the one that runs.

    Raises:
        FailedPrecondition: it is another one.
    """
    try:
        manifest = snapshots.read_manifest(folder)
    except snapshots.SnapshotDamaged:
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


def load_vectors(
    folder: Path,
    source: CorpusSource,
    table: DocumentTable,
    dense: DenseIndex,
    log: Log,
    *,
    anew: bool = False,
) -> Loaded:
    """Fill `dense` from the snapshot, unless `anew`, and from what the database has beyond it."""
    state = None if anew else _read_snapshot(folder, log)
    last_seq = 0
    if state is not None:
        last_seq = state.last_seq
        dense.restore(state.graph, table.rows_of(state.doc_ids), state.tail)
    unsaved = 0
    while (batch := source.vectors_after(last_seq, _VECTORS_PAGE)).seqs.size:
        put_vectors(batch, table, dense)
        last_seq = int(batch.seqs[-1])
        unsaved += batch.seqs.size
    if state is not None:
        unsaved += _fill_gaps(source, table, dense)
    return Loaded(last_seq=last_seq, unsaved=unsaved, new=state is None)


def put_vectors(batch: VectorBatch, table: DocumentTable, dense: DenseIndex) -> None:
    """Add the vectors of documents that `table` knows; the last one of a document counts.

    Raises:
        FailedPrecondition: they have another length than the index.
    """
    if not batch.doc_ids.size:
        return
    if batch.vectors.shape[1] != dense.dimensions:
        raise mismatch(f"{batch.vectors.shape[1]} dimensions", f"a model of {dense.dimensions}")
    rows = table.rows_of(batch.doc_ids)
    known = np.flatnonzero(rows != NO_ROW)[::-1]
    distinct, last = np.unique(rows[known], return_index=True)
    dense.add(distinct, batch.vectors[known[last]])


def open_lexical(
    folder: Path,
    source: CorpusSource,
    table: DocumentTable,
    settings: IndexSettings,
    log: Log,
    *,
    anew: bool = False,
) -> LexicalIndex:
    """Open the words, `anew` without the copy, and make them hold exactly what `table` holds."""
    if anew:
        LexicalIndex.destroy(folder)
    try:
        lexical = LexicalIndex(folder, settings, log)
    except LexicalDamaged as error:
        log.warning("lexical index damaged, building it again", error=str(error))
        LexicalIndex.destroy(folder)
        lexical = LexicalIndex(folder, settings, log)
    live = table.live_ids()
    if not lexical.holds_exactly(live):
        held, times = np.unique(lexical.doc_ids(), return_counts=True)
        lexical.remove(np.setdiff1d(held, live).tolist())
        lexical.remove(held[times > 1].tolist())
        missing = np.setdiff1d(live, held[times == 1])
        for start in range(0, missing.size, _REPAIR_PAGE):
            page = missing[start : start + _REPAIR_PAGE]
            lexical.add(source.documents_of(page.tolist()), replace=False)
            lexical.keep_up()
        lexical.release_writer()
        log.info("lexical index caught up", added=missing.size)
    return lexical


def _read_snapshot(folder: Path, log: Log) -> snapshots.Snapshot | None:
    try:
        return snapshots.read(folder)
    except snapshots.SnapshotDamaged as error:
        log.warning("index snapshot damaged, building it again", error=str(error))
        return None


def _fill_gaps(source: CorpusSource, table: DocumentTable, dense: DenseIndex) -> int:
    """Fetch vectors that have a sequence number below the snapshot's last but are not in it.

    They come from additions that reached the index in another order than the database. Documents
    that are still waiting to be embedded are asked for in vain.
    """
    gaps = dense.missing(np.flatnonzero(table.live[: table.size]))
    found = 0
    for start in range(0, gaps.size, _REPAIR_PAGE):
        batch = source.vectors_of(table.doc_id[gaps[start : start + _REPAIR_PAGE]].tolist())
        put_vectors(batch, table, dense)
        found += batch.doc_ids.size
    return found
