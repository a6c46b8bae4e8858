"""Whatever happens to an index, it finds what a plain search over the stored documents finds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.corpus.document import Document, DocumentFilter
from mneme_server.corpus.ports import Matrix, Rows
from mneme_server.index import TenantIndex
from mneme_server.index.worker import BackgroundWorker
from unit.index.memory_source import DIMENSIONS, MemorySource, RecordingLog, event, units

WORDS = ("parser", "billing", "deploy", "invoice", "timeout")
IDS = st.sets(st.integers(1, 30), min_size=1, max_size=6)

STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)),
    st.tuples(st.just("add behind its back"), st.lists(st.sampled_from(WORDS), max_size=4)),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("remove behind its back"), IDS),
    st.tuples(st.just("archive"), IDS),
    st.tuples(st.just("embed again"), IDS),
    st.tuples(st.sampled_from(["snapshot", "search", "reopen", "crash"]), st.none()),
)


class History:
    """An index, what is stored, and the steps that both go through."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._folder = folder / "0"
        self.source = MemorySource()
        self.log = RecordingLog()
        self.abandoned: list[TenantIndex] = []
        self.index = self._open()
        self._next = 1

    def take(self, step: str, argument: object) -> None:
        match step, argument:
            case "add" | "add behind its back", list(words):
                documents = [event(self._next + i, f"the {word}") for i, word in enumerate(words)]
                self._next += len(words)
                self.source.put(documents)
                batch = self.source.embed([d.doc_id for d in documents], self._vectors(len(words)))
                if step == "add":
                    self.index.add_documents(documents)
                    self.index.add_vectors(batch)
                else:
                    self.take("reopen", None)
            case "remove" | "remove behind its back", set(ids):
                self.source.drop(sorted(ids))
                if step == "remove":
                    self.index.remove(sorted(ids))
                else:
                    self.take("crash", None)
            case "archive", set(ids):
                changed = [replace(d, archived=True) for d in self._known(ids)]
                self.source.put(changed)
                self.index.add_documents(changed)
            case "embed again", set(ids):
                known = [d.doc_id for d in self._known(ids)]
                self.index.add_vectors(self.source.embed(known, self._vectors(len(known))))
            case "snapshot", _:
                self.index.snapshot()
            case "search", _:
                self.index.search_lexical("parser", 5, self.index.select(DocumentFilter()))
            case "reopen", _:
                self.index.close()
                self.index = self._open()
            case "crash", _:
                self.abandoned.append(self.index)
                crashed = self._root / str(len(self.abandoned))
                shutil.copytree(self._folder, crashed)
                self._folder = crashed
                self.index = self._open()

    def check(self) -> None:
        live = self.source.documents
        for wanted in (DocumentFilter(), DocumentFilter(include_archived=False)):
            ids = [i for i, d in live.items() if wanted.include_archived or not d.archived]
            selection = self.index.select(wanted)
            assert sorted(self._ids(np.flatnonzero(selection.mask))) == sorted(ids)
            query = units(1, seed=4)[0]
            hits = self.index.search_dense(query, 7, selection)
            cosines = {i: round(float(self.source.vectors[i][1] @ query), 5) for i in ids}
            best = sorted(cosines.values(), reverse=True)[:7]
            assert [cosines[i] for i in self._ids(hits.rows)] == best
            for word in WORDS:
                found = self.index.search_lexical(word, 100, selection).rows
                assert sorted(self._ids(found)) == sorted(i for i in ids if word in live[i].text)
        assert self.log.warnings == []

    def close(self) -> None:
        for index in [*self.abandoned, self.index]:
            index.close()

    def _open(self) -> TenantIndex:
        return TenantIndex(
            self._folder, self.source, "m", DIMENSIONS, log=self.log, worker=BackgroundWorker()
        )

    def _known(self, ids: set[int]) -> list[Document]:
        return [self.source.documents[i] for i in sorted(ids) if i in self.source.documents]

    def _vectors(self, count: int) -> Matrix:
        vectors = units(max(count, 1), seed=self._next)[:count]
        self._next += 1
        return vectors

    def _ids(self, rows: Rows) -> list[int]:
        ids: list[int] = self.index.columns.doc_id[rows].tolist()
        return ids


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_after_any_history_the_index_equals_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]
) -> None:
    history = History(tmp_path_factory.mktemp("history"))
    try:
        for step, argument in steps:
            history.take(step, argument)
            history.check()
    finally:
        history.close()
