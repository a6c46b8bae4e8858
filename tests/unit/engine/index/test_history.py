"""Whatever happens to an index, it finds what a plain search over the stored documents finds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mneme_server.engine.corpus import live_index
from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.engine.corpus.ports import Matrix, Rows
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.upkeep import BackgroundWorker
from support.crashes import copy_as_of_one_moment
from unit.engine.index.memory_source import (
    DIMENSIONS,
    MemorySource,
    RecordingLog,
    event,
    eventually,
    units,
)

WORDS = ("parser", "billing", "deploy", "invoice", "timeout")
IDS = st.sets(st.integers(1, 12), min_size=1, max_size=6)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
FATES = st.sampled_from(["applied", "missed", "failing", "failing twice"])

STEPS = st.one_of(
    st.tuples(st.just("add"), TEXTS, FATES),
    st.tuples(st.just("remove"), IDS, FATES),
    st.tuples(st.just("archive"), IDS, FATES),
    st.tuples(st.just("embed again"), IDS, FATES),
    st.tuples(st.just("trim"), st.integers(1, 3), st.none()),
    st.tuples(
        st.sampled_from(
            ["snapshot", "search", "reopen", "crash", "keep", "restore", "change everything"]
        ),
        st.none(),
        st.none(),
    ),
)


class History:
    """An index, what is stored, and the steps that both go through."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._folder = folder / "0"
        self._folder.mkdir()
        self.source = MemorySource()
        self.log = RecordingLog()
        self.abandoned: list[LiveIndex[TenantIndex]] = []
        self._next = 1
        self._kept = (copy.deepcopy(self.source), self._next)
        self.live = self._open()

    @property
    def index(self) -> TenantIndex:
        return self.live.current

    def take(self, step: str, argument: object, fate: str | None) -> None:
        match step, argument:
            case "add", list(words):
                documents = [event(self._next + i, f"the {word}") for i, word in enumerate(words)]
                self._next += len(words)
                self.source.put(documents)
                self._commit(CorpusChange(saved=documents), fate)
                batch = self.source.embed([d.doc_id for d in documents], self._vectors(len(words)))
                self._commit(CorpusChange(vectors=[batch]), fate)
            case "remove", set(ids):
                self.source.drop(sorted(ids))
                self._commit(CorpusChange(removed=sorted(ids)), fate)
            case "archive", set(ids):
                changed = [replace(d, archived=True) for d in self._known(ids)]
                self.source.put(changed)
                self._commit(CorpusChange(saved=changed), fate)
            case "embed again", set(ids):
                known = [d.doc_id for d in self._known(ids)]
                batch = self.source.embed(known, self._vectors(len(known)))
                self._commit(CorpusChange(vectors=[batch]), fate)
            case "trim", int(kept):
                self.source.trim(kept)
            case "change everything", _:
                self.source.note(everything=True)
                self._commit(CorpusChange(everything=True), "applied")
            case "snapshot", _:
                self.index.snapshot()
            case "search", _:
                self.index.search_lexical("parser", 5, self.index.select(DocumentFilter()))
            case "reopen", _:
                self.live.close()
                self.live = self._open()
            case "crash", _:
                self._crash()
            case "keep", _:
                self._kept = (copy.deepcopy(self.source), self._next)
            case "restore", _:
                # By hand, with the index of what was there, and numbers that are used again.
                self.live.close()
                self.source, self._next = copy.deepcopy(self._kept[0]), self._kept[1]
                self.live = self._open()

    def _crash(self) -> None:
        self.abandoned.append(self.live)
        crashed = self._root / str(len(self.abandoned))
        copy_as_of_one_moment(self._folder, crashed)
        self._folder = crashed
        self.live = self._open()

    def _commit(self, change: CorpusChange, fate: str | None) -> None:
        change.position = self.source.head()
        if fate == "missed":
            return
        failures = {"applied": 0, "failing": 1, "failing twice": 2}[fate or "applied"]
        with failing(TenantIndex, "advance", failures):
            self.live.apply(change)

    def catch_up(self) -> None:
        """Wait as a reader does who knows of the newest commit."""
        head = self.source.head()
        eventually(lambda: self.live.wait_for(head.number, 30) and not self.index.partial)
        assert self.index.position == head

    def check(self) -> None:
        self.catch_up()
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
        assert [line for line in self.log.warnings if "an index failed" not in line] == []

    def close(self) -> None:
        for live in [*self.abandoned, self.live]:
            live.close()

    def _open(self) -> LiveIndex[TenantIndex]:
        index = TenantIndex(
            self._folder, self.source, "m", DIMENSIONS, log=self.log, worker=BackgroundWorker()
        )
        return LiveIndex("acme", index, self.source.changes_after)

    def _known(self, ids: set[int]) -> list[Document]:
        return [self.source.documents[i] for i in sorted(ids) if i in self.source.documents]

    def _vectors(self, count: int) -> Matrix:
        vectors = units(max(count, 1), seed=self._next)[:count]
        self._next += 1
        return vectors

    def _ids(self, rows: Rows) -> list[int]:
        ids: list[int] = self.index.columns.doc_id[rows].tolist()
        return ids


@contextmanager
def failing(owner: type, name: str, times: int) -> Iterator[None]:
    """Have the first calls of a method fail."""
    real, left = getattr(owner, name), [times]

    def behave(self: Any, *args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("the index broke")
        return real(self, *args)

    with mock.patch.object(owner, name, behave):
        yield


@settings(max_examples=60, deadline=None)
@example(steps=[("remove", {1}, "missed"), ("add", ["parser"], "applied")])
@given(steps=st.lists(STEPS, max_size=16))
def test_after_any_history_the_index_equals_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object, str | None]]
) -> None:
    """Whatever was committed, missed, trimmed or put back, it is as if built from nothing."""
    history = History(tmp_path_factory.mktemp("history"))
    try:
        with mock.patch.object(live_index, "_delay_s", return_value=0.0):
            for step in steps:
                history.take(*step)
                if step[2] != "missed":
                    history.check()
            history.check()
    finally:
        history.close()
