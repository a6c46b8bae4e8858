"""A check that a tenant's questions are answered alike in two places that keep it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.unit import EmbeddingModel, Unit

QUESTIONS = 100
FIRST = 10
"""So many answers of each are compared."""
ALIKE = 0.98
"""The share of them that has to be the same where vectors are searched approximately."""
_WORDS = 12


def same_answers(tenant_id: str, one: TenantStore[Unit], other: TenantStore[Unit]) -> str:
    """Ask both for the same words and the same vectors, some of the tenant's own; say how alike the
    first answers are. Each is asked by an index that is built from its rows, and thrown away.

    Raises:
        DataLoss: they are not alike enough.
    """
    with one.read() as unit:
        model = unit.embedding_model()
    if model is None:
        return "nothing was ever stored"
    words, vectors = _questions(one, model)
    here, exact = _answers(one, model, words, vectors)
    there, _ = _answers(other, model, words, vectors)
    pairs = list(zip(here, there, strict=True))
    same = sum(len(set(left) & set(right)) for left, right in pairs)
    asked = sum(len(left) for left in here)
    found = f"{len(pairs)} questions, {same} of {asked} first answers the same"
    if asked and (same < asked if exact else same < ALIKE * asked):
        raise DataLoss(f"{tenant_id} is answered otherwise in its new place: {found}")
    if exact and here != there:
        raise DataLoss(f"{tenant_id} is answered in another order in its new place: {found}")
    return found


def _questions(store: TenantStore[Unit], model: EmbeddingModel) -> tuple[Sequence[str], Matrix]:
    """Return the beginnings of some texts, and the vectors of some."""
    source = store.source
    with store.read() as unit:
        last = unit.rows.highest("documents")
    starts = range(0, last, max(1, -(-last // QUESTIONS)))
    near = (document.doc_id for start in starts for document in source.documents_after(start, 1))
    chosen = list(dict.fromkeys(near))
    texts = [" ".join(found.text.split()[:_WORDS]) for found in source.documents_of(chosen)]
    vectors = source.vectors_of(chosen).vectors
    return texts, vectors if len(vectors) else np.empty((0, model.dimensions), np.float32)


def _answers(
    store: TenantStore[Unit], model: EmbeddingModel, words: Sequence[str], vectors: Matrix
) -> tuple[list[list[int]], bool]:
    """Return which documents answer each question, and whether vectors are searched exactly."""
    from mneme_server.engine.index.tenant_index import TenantIndex  # See `engine.tenants.opening`.

    with tempfile.TemporaryDirectory(prefix="mneme-moving-") as folder:
        index = TenantIndex(Path(folder), store.source, *model)
        try:
            everything = index.select(DocumentFilter())
            found = [index.search_lexical(asked, FIRST, everything) for asked in words]
            found += [index.search_dense(asked, FIRST, everything) for asked in vectors]
            names = index.columns.doc_id
            return [[int(names[row]) for row in hits.rows] for hits in found], index.mode == "exact"
        finally:
            index.abandon()
            index.discard()
