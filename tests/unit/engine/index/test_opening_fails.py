"""An index that cannot be opened, since the store cannot be read, leaves no files at work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.engine.index import scratch
from mneme_server.engine.index.cold_search import ColdTenantIndex
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.upkeep import BackgroundWorker
from unit.engine.index.memory_source import DIMENSIONS, MemorySource, RecordingLog, event, units


class Interrupted:
    """Implements `CorpusSource`: another, which cannot be read after so many calls."""

    layout = MemorySource.layout

    def __init__(self, source: MemorySource, calls: int) -> None:
        self._source = source
        self._left = calls

    def __getattr__(self, name: str) -> object:
        self._left -= 1
        if self._left < 0:
            raise Unavailable("it cannot be reached", reason=Reason.DATABASE_ERROR)
        return getattr(self._source, name)


def at_work() -> set[Path]:
    """Return the folders of this process's indexes; those of other tests may be going."""
    return {folder for root, _ in scratch._roots.values() for folder in root.iterdir()}


@pytest.fixture
def source(tmp_path: Path) -> MemorySource:
    """A source that has changed since a copy of its index was written."""
    source = MemorySource()
    source.put([event(n, f"heron {n}") for n in range(1, 6)])
    source.embed(range(1, 6), units(5))
    TenantIndex(tmp_path, source, "m", DIMENSIONS, worker=BackgroundWorker()).close()
    source.put([event(6, "a bittern")])
    source.embed([6], units(1, seed=6))
    source.drop([2])
    return source


@pytest.mark.parametrize("copied", [True, False], ids=["from its copy", "from the store"])
def test_what_was_opened_by_then_is_let_go_of(
    copied: bool, source: MemorySource, tmp_path: Path
) -> None:
    folder, before = tmp_path if copied else tmp_path / "new", at_work()
    for calls in range(100):
        broken = Interrupted(source, calls)
        try:
            index = TenantIndex(folder, broken, "m", DIMENSIONS, worker=BackgroundWorker())  # type: ignore[arg-type]
        except Unavailable:
            assert at_work() <= before, f"after {calls} calls"
            continue
        assert calls > 3
        assert index.document_count == 5
        index.close()
        return
    pytest.fail("it could never be opened")


def test_a_folder_goes_though_a_file_is_made_in_it_while_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As tantivy does, which looks twice a second whether there is anything new."""
    folder, remove, made = scratch.new_folder(0), os.rmdir, []

    def rmdir(path: Any, **given: Any) -> None:
        if not made:
            made.append(folder / ".tantivy-meta.lock")
            made[0].touch()
        remove(path, **given)

    monkeypatch.setattr(os, "rmdir", rmdir)
    scratch.remove(folder)
    assert made
    assert not folder.exists()


def test_what_stands_for_an_index_that_is_not_built_is_let_go_of_too(
    source: MemorySource, tmp_path: Path
) -> None:
    before = at_work()
    with pytest.raises(Unavailable):
        ColdTenantIndex(
            tmp_path / "new", Interrupted(source, 0), source, "m", DIMENSIONS,  # type: ignore[arg-type]
            settings=IndexSettings(), log=RecordingLog(),
        )  # fmt: skip
    assert at_work() <= before
