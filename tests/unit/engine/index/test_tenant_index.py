"""A tenant's index as a whole, on real files."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.ports import CorpusIndex, Rows, Selection, VectorBatch
from mneme_server.engine.index.snapshot import read_manifest
from mneme_server.engine.index.tenant_index import IndexSettings, TenantIndex
from mneme_server.engine.index.upkeep import BackgroundWorker
from mneme_server.engine.index.words.lexical import LexicalIndex
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.learn.model import LESSON
from support.crashes import copy_as_of_one_moment
from unit.engine.index.memory_source import (
    DIMENSIONS,
    MemorySource,
    RecordingLog,
    event,
    eventually,
    units,
)

EVERYTHING = DocumentFilter()
GRAPHED = IndexSettings(
    exact_limit=100, merge_at=20, ef_search=200, ef_construction=200, exact_selected=30
)


class Home:
    """A tenant's folder, its database and whatever was opened on them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.source = MemorySource()
        self.log = RecordingLog()
        self.last_id = 0
        self.opened: list[TenantIndex] = []
        self._worker = BackgroundWorker()

    def open(
        self, settings: IndexSettings | None = None, *, model: str = "m", folder: Path | None = None
    ) -> TenantIndex:
        index = TenantIndex(
            folder or self.folder,
            self.source,
            model,
            DIMENSIONS,
            settings=settings,
            log=self.log,
            worker=self._worker,
        )
        self.opened.append(index)
        return index

    def record(self, index: TenantIndex | None, count: int, seed: int = 0) -> None:
        """Store documents and their vectors, and tell the index."""
        first = self.last_id + 1
        self.last_id += count  # Ids are never used again, not even that of the last document.
        documents = [event(i, f"note {i} on topic{i % 10}") for i in range(first, first + count)]
        self.source.put(documents)
        batch = self.source.embed([d.doc_id for d in documents], units(count, seed=seed + first))
        if index is not None:
            index.add_documents(documents)
            index.add_vectors(batch)
            index.advance(self.source.head())

    def check(self, index: TenantIndex) -> None:
        """Compare what the index finds with what is stored."""
        selection = index.select(EVERYTHING)
        ids = index.columns.doc_id[np.flatnonzero(selection.mask)]
        assert sorted(ids.tolist()) == sorted(self.source.documents)
        for doc_id in list(self.source.vectors)[:: max(1, len(self.source.vectors) // 20)]:
            hits = index.search_dense(self.source.vectors[doc_id][1], 1, selection)
            assert index.columns.doc_id[hits.rows].tolist() == [doc_id]
            assert hits.scores[0] == pytest.approx(1.0, abs=1e-4)
            words = index.search_lexical(f"note {doc_id}", 1, selection)
            assert index.columns.doc_id[words.rows].tolist() == [doc_id]
        assert index.stats().documents == len(self.source.documents)
        assert index.stats().vectors == len(self.source.vectors)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "tenant")
    yield home
    for index in home.opened:
        index.close()


def test_it_is_a_corpus_index(home: Home) -> None:
    index: CorpusIndex = home.open()
    assert index.newest_us == 0
    assert index.select(EVERYTHING).count == 0
    assert index.search_dense(units(1)[0], 5, index.select(EVERYTHING)).rows.size == 0
    assert index.search_lexical("anything", 5, index.select(EVERYTHING)).rows.size == 0


def test_what_was_added_is_found(home: Home) -> None:
    index = home.open()
    home.record(index, 50)
    home.check(index)
    assert index.newest_us == 50_000


def test_what_was_closed_is_there_when_opened_again(home: Home) -> None:
    index = home.open()
    home.record(index, 50)
    index.close()
    home.check(home.open())
    assert home.log.warnings == []


def test_what_the_database_got_behind_its_back_is_caught_up(home: Home) -> None:
    index = home.open()
    home.record(index, 30)
    index.close()
    home.record(None, 20)
    home.source.drop([3, 4, 35])
    home.check(home.open())


@pytest.mark.parametrize("settings", [IndexSettings(), GRAPHED])
def test_a_crash_at_any_time_leaves_a_folder_that_opens(
    home: Home, tmp_path: Path, settings: IndexSettings
) -> None:
    index = home.open(settings)
    for step in range(8):
        home.record(index, 40)
        if step % 3 == 1:
            index.snapshot()
        if step % 3 == 2:
            index.search_lexical("topic1", 1, index.select(EVERYTHING))
        crashed = tmp_path / f"crashed{step}"
        copy_as_of_one_moment(home.folder, crashed)
        survivor = home.open(settings, folder=crashed)
        home.check(survivor)
        survivor.close()
    assert home.log.warnings == []


@pytest.mark.parametrize("stored", [1, 10_001])
def test_a_new_index_is_on_the_disk_soon_after_it_was_opened(home: Home, stored: int) -> None:
    home.record(None, stored)
    home.open(IndexSettings(snapshot_after=100_000))
    eventually(lambda: read_manifest(home.folder / "index") is not None)


def test_copies_that_are_written_at_once_are_whole(home: Home) -> None:
    index = home.open(GRAPHED)
    for _ in range(10):
        home.record(index, 5)
        writers = [threading.Thread(target=index.snapshot) for _ in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        crashed = home.folder / "crashed"
        copy_as_of_one_moment(home.folder / "index", crashed / "index")
        home.check(home.open(GRAPHED, folder=crashed))
    assert home.log.warnings == []


@pytest.mark.parametrize("part", ["graph", "ids", "tail", "rows", "names"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "emptied", "missing"])
def test_a_damaged_snapshot_is_reported_and_built_again(home: Home, part: str, damage: str) -> None:
    index = home.open(GRAPHED)
    home.record(index, 150)
    eventually(lambda: index.stats().mode == "hnsw")
    home.record(index, 5)
    index.close()
    damage_file(next((home.folder / "index").glob(f"{part}-*")), damage)
    again = home.open(GRAPHED)
    home.check(again)
    assert len(home.log.warnings) == 1
    assert "copy cannot be used" in home.log.warnings[0]
    again.close()
    home.check(home.open(GRAPHED))
    assert len(home.log.warnings) == 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": 99}', b'{"format": 2}', b"\xff"]
)
def test_a_damaged_manifest_is_reported_and_written_again(home: Home, content: bytes) -> None:
    index = home.open()
    home.record(index, 20)
    index.close()
    (home.folder / "index" / "manifest.json").write_bytes(content)
    again = home.open()
    home.check(again)
    assert len(home.log.warnings) == 1
    again.close()
    home.check(home.open())
    assert len(home.log.warnings) == 1


@pytest.mark.parametrize("pattern", ["*.idx", "*.term", "*.fast", "manifest.json"])
def test_a_damaged_lexical_index_is_reported_and_built_again(home: Home, pattern: str) -> None:
    index = home.open()
    home.record(index, 50)
    index.close()
    damage_file(next((home.folder / "index" / "lexical").glob(pattern)), "truncated")
    home.check(home.open())
    assert len(home.log.warnings) == 1
    assert "copy of the words cannot be used" in home.log.warnings[0]


def test_words_of_another_layout_are_built_again_when_they_are_opened(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("mneme_server.engine.index.words.lexical.LAYOUT", "7:another")
        index = home.open()
        home.record(index, 50)
        index.close()
    home.check(home.open())
    assert "names another layout than" in home.log.warnings[0]
    home.check(home.open())
    assert len(home.log.warnings) == 1


def test_words_of_documents_that_went_behind_its_back_are_deleted(home: Home) -> None:
    index = home.open()
    home.record(index, 20)
    index.close()
    home.source.drop([4, 5])
    home.open().close()
    words = LexicalIndex(home.folder / "index" / "lexical", IndexSettings())
    assert words.holds_exactly(np.array(sorted(home.source.documents)))


def test_without_its_folder_everything_is_built_again(home: Home) -> None:
    index = home.open()
    home.record(index, 50)
    index.close()
    shutil.rmtree(home.folder / "index")
    home.check(home.open())


def test_another_model_is_refused_with_the_command_that_helps(home: Home) -> None:
    index = home.open(model="one")
    index.close()
    with pytest.raises(FailedPrecondition, match="mneme-server reindex") as refusal:
        home.open(model="two")
    assert refusal.value.reason == Reason.DIMENSION_MISMATCH


def test_vectors_and_queries_of_another_length_are_refused(home: Home) -> None:
    index = home.open()
    home.record(index, 2)
    one = np.array([1])
    with pytest.raises(FailedPrecondition, match="mneme-server reindex"):
        index.add_vectors(VectorBatch(one, one, units(1, dimensions=4)))
    with pytest.raises(FailedPrecondition, match="mneme-server reindex"):
        index.search_dense(units(1, dimensions=4)[0], 1, index.select(EVERYTHING))


def test_a_removed_document_is_found_by_nothing(home: Home) -> None:
    index = home.open()
    home.record(index, 20)
    before = index.select(EVERYTHING)
    vector = home.source.vectors[7][1]
    home.source.drop([7])
    index.remove([7, 999])
    home.check(index)
    assert 7 not in index.columns.doc_id[index.search_dense(vector, 20, before).rows]
    words = index.search_lexical("note 7", 20, index.select(EVERYTHING))
    assert 7 not in index.columns.doc_id[words.rows]


def test_vectors_of_removed_documents_that_arrive_late_are_ignored(home: Home) -> None:
    index = home.open()
    home.source.put([event(1), event(2)])
    index.add_documents([event(1), event(2)])
    batch = home.source.embed([1, 2], units(2))
    home.source.drop([1])
    index.remove([1])
    index.add_vectors(batch)
    assert index.stats().vectors == 1


def test_vectors_that_reached_the_index_out_of_order_survive_a_snapshot(home: Home) -> None:
    index = home.open()
    documents = [event(1), event(2)]
    home.source.put(documents)
    index.add_documents(documents)
    home.source.embed([1], units(1, seed=1))
    index.add_vectors(home.source.embed([2], units(1, seed=2)))
    index.close()
    assert home.open().stats().vectors == 2


def test_a_changed_attribute_is_seen_at_once_and_after_opening_again(home: Home) -> None:
    index = home.open()
    home.record(index, 5)
    changed = replace(home.source.documents[3], archived=True, tags=("new",))
    home.source.put([changed])
    index.add_documents([changed])
    for opened in (index, home.open()):
        visible = opened.select(DocumentFilter(include_archived=False))
        assert visible.count == 4
        assert opened.select(DocumentFilter(tags=frozenset({"new"}))).count == 1
        assert len(opened.search_lexical("note", 10, visible).rows) == 4
        opened.close()


@pytest.mark.parametrize("count", [3, 40, 300, 1_500])
@pytest.mark.parametrize("settings", [IndexSettings(), GRAPHED])
def test_filtered_searches_find_as_many_as_there_are(
    home: Home, count: int, settings: IndexSettings
) -> None:
    index = home.open(settings)
    documents = [
        event(
            i,
            f"the same words {i}",
            kind=LESSON if i % 50 == 0 else EVENT,
            session_id=f"s{i % 40}" if i % 50 else "",
            agent_id=f"a{i % 3}",
        )
        for i in range(1, count + 1)
    ]
    home.source.put(documents)
    index.add_documents(documents)
    index.add_vectors(home.source.embed([d.doc_id for d in documents], units(count)))
    if settings is GRAPHED and count > GRAPHED.exact_limit:
        eventually(lambda: index.stats().mode == "hnsw")
    query = units(1, seed=77)[0]
    for wanted in (
        DocumentFilter(kinds=frozenset({LESSON})),
        DocumentFilter(session_id="s7"),
        DocumentFilter(agent_id="a1"),
        DocumentFilter(start_us=100_000, end_us=160_000),
        DocumentFilter(start_us=100_000, end_us=700_000),
        DocumentFilter(agent_id="a2", start_us=2_000),
        EVERYTHING,
    ):
        selection = index.select(wanted)
        for k in (1, 7, 100, 2_000):
            dense = index.search_dense(query, k, selection)
            words = index.search_lexical("same words", k, selection)
            for hits in (dense, words):
                assert len(set(hits.rows.tolist())) == min(k, selection.count)
                assert selection.mask[hits.rows].all()
                assert (np.diff(hits.scores) <= 0).all()


def test_of_equal_scores_the_newest_document_comes_first(home: Home) -> None:
    index = home.open()
    documents = [event(i, "exactly the same") for i in range(1, 200)]
    home.source.put(documents)
    index.add_documents(documents[:150])
    selection = index.select(EVERYTHING)
    index.search_lexical("same", 1, selection)
    index.add_documents(documents[150:])
    vectors = np.repeat(units(1), 199, axis=0)
    index.add_vectors(home.source.embed(list(range(1, 200)), vectors))
    selection = index.select(EVERYTHING)
    newest = list(range(199, 189, -1))
    for hits in (
        index.search_dense(vectors[0], 10, selection),
        index.search_lexical("same", 10, selection),
    ):
        assert index.columns.doc_id[hits.rows].tolist() == newest


def test_of_many_equal_scores_the_newest_come_first_wherever_the_words_lie(home: Home) -> None:
    index = home.open(IndexSettings(counted_limit=100))
    documents = [event(i, "exactly the same") for i in range(1, 500)]
    home.source.put(documents)
    index.add_documents(documents)
    selection = index.select(EVERYTHING)
    hits = index.search_lexical("same", 10, selection)
    assert index.stats().lexical_waiting == 0
    assert index.columns.doc_id[hits.rows].tolist() == list(range(499, 489, -1))


@pytest.mark.parametrize("seed", range(5))
def test_of_very_many_equal_scores_the_newest_come_first_however_the_files_lie(
    home: Home, seed: int
) -> None:
    index = home.open(IndexSettings(commit_after=700))
    same = np.random.default_rng(seed).random(6000) < np.linspace(
        0.1 * seed, 0.9 - 0.2 * seed, 6000
    )
    documents = [
        event(i, "exactly the same" if equal else f"the same once more {i}", session_id=f"s{i % 2}")
        for i, equal in enumerate(same, 1)
    ]
    documents[9] = event(10, "same, same, the same", session_id="s0")
    home.source.put(documents)
    for start in range(0, 6000, 500):
        index.add_documents(documents[start : start + 500])
    gone = [i for i in range(5000, 6001) if i % 3 == 0]
    index.remove(gone)
    equal = [i for i in range(6000, 0, -1) if same[i - 1] and i not in gone and i != 10]
    for filter_, ids in (
        (EVERYTHING, equal),
        (DocumentFilter(session_id="s0"), [i for i in equal if i % 2 == 0]),
    ):
        hits = index.search_lexical("exactly the same", 30, index.select(filter_))
        assert index.columns.doc_id[hits.rows].tolist() == ids[:30]
    hits = index.search_lexical("same", 3, index.select(EVERYTHING))
    assert index.columns.doc_id[hits.rows].tolist() == [10, *equal[:2]]


def test_scores_of_the_best_graph_candidates_are_those_of_the_stored_vectors(home: Home) -> None:
    index = home.open(GRAPHED)
    home.record(index, 400)
    eventually(lambda: index.stats().mode == "hnsw")
    query = units(1, seed=5)[0]
    hits = index.search_dense(query, 10, index.select(EVERYTHING))
    stored = [home.source.vectors[int(i)][1] @ query for i in index.columns.doc_id[hits.rows]]
    assert hits.scores == pytest.approx(stored, abs=2e-6)
    approximate = index.similarities(query, hits.rows)
    assert approximate == pytest.approx(stored, abs=0.01)


def test_a_graph_survives_closing_and_grows_afterwards(home: Home) -> None:
    index = home.open(GRAPHED)
    home.record(index, 200)
    eventually(lambda: index.stats().mode == "hnsw")
    index.close()
    again = home.open(GRAPHED)
    assert again.stats().mode == "hnsw"
    home.record(again, 100)
    home.check(again)
    again.close()
    last = home.open(GRAPHED)
    home.check(last)


def test_waiting_words_are_committed_and_the_writer_released_without_a_search(home: Home) -> None:
    index = home.open(replace(GRAPHED, quiet_s=0.05))
    home.record(index, 3)
    eventually(lambda: index.stats().lexical_waiting == 0)
    eventually(lambda: not index.stats().lexical_writer)


def saved_position(home: Home) -> Position | None:
    manifest = read_manifest(home.folder / "index")
    return Position(*manifest["position"]) if manifest else None


def test_a_snapshot_is_written_after_many_additions(home: Home) -> None:
    index = home.open(replace(GRAPHED, snapshot_after=50))
    home.record(index, 60)
    eventually(lambda: saved_position(home) == home.source.head())


def test_a_part_that_failed_comes_from_its_copy_and_when_it_fails_again_from_the_database(
    home: Home,
) -> None:
    index = home.open()
    home.record(index, 30)
    index.close()
    index, copy = home.open(), home.folder / "index" / "lexical" / "manifest.json"
    for kept in (True, False):
        index.missed(OSError("no space"))
        index.abandon()
        built = index.rebuilt()
        index.discard()
        assert copy.exists() == kept
        home.check(built)
        index = built


def test_a_snapshot_that_cannot_be_written_is_reported_and_loses_nothing(home: Home) -> None:
    index = home.open()
    home.record(index, 20)
    index.close()
    again = home.open()
    home.record(again, 20)
    blocker = home.folder / "index" / "ids-2"
    blocker.mkdir()
    again.close()
    blocker.rmdir()
    assert "index upkeep failed" in home.log.warnings[0]
    home.check(home.open())


def test_many_readers_and_a_writer_work_side_by_side(home: Home) -> None:
    index = home.open(GRAPHED)
    home.record(index, 50)
    query = home.source.vectors[9][1]
    errors: list[BaseException] = []
    done = threading.Event()

    def fits(rows: Rows, selection: Selection) -> bool:
        """Whether the rows are selected; one may have been removed since it was found."""
        lost = rows[~selection.mask[rows]]
        return all(int(i) not in home.source.documents for i in index.columns.doc_id[lost])

    def read() -> None:
        try:
            while not done.is_set():
                selection = index.select(EVERYTHING)
                hits = index.search_dense(query, 5, selection)
                assert index.columns.doc_id[hits.rows[0]] == 9
                assert fits(hits.rows, selection)
                words = index.search_lexical("note topic1", 5, selection)
                assert words.rows.size == 5
                assert fits(words.rows, selection)
                index.similarities(query, words.rows)
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        home.record(index, 25)
        gone = [max(home.source.documents)]
        home.source.drop(gone)
        index.remove(gone)
    done.set()
    for reader in readers:
        reader.join()
    assert errors == []
    home.check(index)


def damage_file(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "flipped":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "truncated" else b"")


def test_a_clean_index_of_nothing_keeps_no_name_and_no_vector_in_its_files(home: Home) -> None:
    index = home.open()
    index.add_documents([event(1, "the heron", session_id="zyxquorl")])
    home.source.put([event(1, "the heron", session_id="zyxquorl")])
    index.add_vectors(home.source.embed([1], units(1)))
    index.advance(home.source.head())
    index.close()
    index = home.open()
    home.source.drop([1])
    index.remove([1])
    index.abandon()
    clean = index.rebuilt(clean=True)
    home.opened.append(clean)
    index.discard()
    clean.write()
    files = b"".join(file.read_bytes() for file in home.folder.rglob("*") if file.is_file())
    assert b"zyxquorl" not in files
    assert units(1).tobytes() not in files


def test_a_damaged_manifest_of_an_empty_index_is_reported_once(home: Home) -> None:
    home.open().close()
    (home.folder / "index" / "manifest.json").write_bytes(b"{")
    home.open().close()
    home.open().close()
    assert len(home.log.warnings) == 1
