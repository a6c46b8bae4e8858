"""The index's copy on disk: what it holds, what of it is written again, which copies are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from mneme_server.engine.index import columns as columns_module
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.tenant_index import IndexSettings
from numpy.typing import NDArray
from unit.engine.index.memory_source import event, eventually
from unit.engine.index.test_columns import STEPS, Steps, apply
from unit.engine.index.test_tenant_index import GRAPHED, Home, home

__all__ = ["home"]

MANY_GRAPHS = IndexSettings(
    exact_limit=100, merge_at=20, ef_search=200, ef_construction=200, exact_selected=30,
    graph_limit=100, graph_share=0.2,
)  # fmt: skip


def files(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home.folder / "index").glob("*-*")}


def manifest(home: Home) -> dict[str, Any]:
    sealed = json.loads((home.folder / "index" / "manifest.json").read_bytes())
    found: dict[str, Any] = json.loads(sealed["manifest"])
    return found


@given(STEPS, STEPS)
@settings(max_examples=60, deadline=None)
def test_columns_that_were_copied_are_those_that_were_there(before: Steps, after: Steps) -> None:
    chunk, columns_module.CHUNK = columns_module.CHUNK, 4
    try:
        table, chunks = DocumentTable(), {}
        for steps in (before, after):
            apply(table, steps)
            copied = table.export()
            chunks |= {number: [a.copy() for a in part] for number, part in copied.chunks.items()}
        read = DocumentTable()

        def copy(number: int, arrays: Sequence[NDArray[Any]]) -> None:
            for array, saved in zip(arrays, chunks[number], strict=True):
                array[:] = saved

        read.restore(copied.rows, json.loads(json.dumps(named(copied.names))) | tags(table), copy)
    finally:
        columns_module.CHUNK = chunk
    assert seen(read) == seen(table)
    apply(read, [[event(999, "one more", session_id="a", position=5)]])
    apply(table, [[event(999, "one more", session_id="a", position=5)]])
    assert seen(read) == seen(table)


def named(names: Any) -> dict[str, list[Any]]:
    return {name: found for name, found in names.items() if name != "tags"}


def tags(table: DocumentTable) -> dict[str, list[Any]]:
    return {"tags": table.export().names["tags"]}


def seen(table: DocumentTable) -> object:
    """Return everything that can be seen of each live document, wherever its row is."""
    rows = np.flatnonzero(table.live[: table.size])
    ids = table.doc_id[: table.size]
    numbered = {
        name: ["", *values] for name, values in table.export().names.items()
    }  # -1, the first one counted from the end, stands for none.
    found = {}
    for row in rows.tolist():
        values = {}
        for name in columns_module.COLUMNS:
            value = getattr(table, name)[row]
            values[name] = numbered[name][value + 1] if name in numbered else value.item()
        for name in ("previous", "next"):
            other = int(getattr(table, name)[row])
            values[name] = None if other < 0 else int(ids[other])
        values["words of the session"] = table.session_words(table.session[[row]]).tolist()
        found[int(ids[row])] = values
    return found, table.live_count, table.newest_us


def test_a_graph_that_did_not_change_keeps_its_file(home: Home) -> None:
    index = home.open(MANY_GRAPHS)
    for _ in range(4):
        home.record(index, 110)
        eventually(lambda: index.stats().dense_waiting < 20)
    index.snapshot()
    before = files(home)
    graphs = [entry["name"] for entry in manifest(home)["graphs"]]
    assert len(graphs) > 2
    home.record(index, 60)
    eventually(lambda: index.stats().dense_waiting < 20)
    index.snapshot()
    assert {name: before[name] for name in graphs[:-1]}.items() <= files(home).items()
    home.check(index)
    index.close()
    home.check(home.open(MANY_GRAPHS))
    assert home.log.warnings == []


def test_documents_are_read_again_when_they_are_made_of_something_else(home: Home) -> None:
    index = home.open()
    home.record(index, 50)
    index.close()
    home.source.layout = "another one"
    read: list[int] = []
    documents_after = home.source.documents_after

    def counted(doc_id: int, limit: int) -> object:
        read.append(doc_id)
        return documents_after(doc_id, limit)

    home.source.documents_after = counted  # type: ignore[method-assign,assignment]
    again = home.open()
    home.check(again)
    assert read
    again.close()
    read.clear()
    home.check(home.open())
    assert read == []  # They come from the copy.
    assert home.log.warnings == []


def test_a_copy_older_than_what_the_feed_keeps_is_built_anew(home: Home) -> None:
    index = home.open()
    home.record(index, 50)
    index.close()
    home.record(None, 10)
    home.source.drop([3])
    home.source.trim(1)
    again = home.open()
    home.check(again)


def test_a_copy_that_cannot_be_written_is_whole_the_next_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = home.open()
    home.record(index, 50)
    index.snapshot()
    home.record(index, 50)

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mneme_server.engine.index.snapshot.sync_folder", full)
        with pytest.raises(OSError, match="No space"):
            index.snapshot()
    index.snapshot()
    index.abandon()  # As after a crash: nothing is written any more.
    home.check(home.open())
    assert home.log.warnings == []


def test_a_copy_whose_folder_went_is_written_whole(home: Home, tmp_path: Path) -> None:
    index = home.open()
    home.record(index, 50)
    index.snapshot()
    (home.folder / "index").rename(tmp_path / "elsewhere")
    home.record(index, 5)
    index.snapshot()
    index.abandon()
    home.check(home.open())
    assert home.log.warnings == []


def test_a_graph_that_was_built_after_the_last_copy_is_in_the_next(home: Home) -> None:
    index = home.open(IndexSettings(exact_limit=1_000))
    home.record(index, 150)
    index.snapshot()
    index.close()
    again = home.open(GRAPHED)  # It wants a graph of what lies there.
    eventually(lambda: again.stats().mode == "hnsw")
    again.close()
    assert manifest(home)["graphs"]
    home.check(home.open(GRAPHED))
