"""The words of what was just written: in memory, and scored as what lies in files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.upkeep import BackgroundWorker
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.lexical import LexicalIndex
from unit.engine.index.memory_source import DIMENSIONS, MemorySource, event, eventually

EVERYTHING = DocumentFilter()
ONE_SESSION = DocumentFilter(session_id="s1")
WEIGHTS = {WordField.TEXT: 1.0, WordField.CONTEXT: 0.3}
NEVER = {"quiet_s": 1e6, "commit_delay_s": 1e6}
WORDS = [
    "parser",
    "broke",
    "payment",
    "café",
    "the",
    "отчёт",
    "готов",
    "支付网关",
    "E-4412",
    "x" * 30,
]

texts = st.lists(st.sampled_from(WORDS), max_size=70).map(" ".join)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), texts, texts, st.sampled_from(["s1", "s2"])),
        st.tuples(st.just("change"), st.integers(0, 20), texts),
        st.tuples(st.just("remove"), st.integers(0, 20)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("copy")),
        st.tuples(st.just("rest")),
        st.tuples(st.just("open again")),
    ),
    max_size=25,
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


class Home:
    """A folder, what is stored, and its index, which is left open as after a crash."""

    def __init__(self, folder: Path, **settings: float) -> None:
        self.folder = folder
        self.source = MemorySource()
        self.settings = IndexSettings(**{**NEVER, **settings})  # type: ignore[arg-type]
        self.last_id = 0
        self.index = self.opened(folder)

    def opened(self, folder: Path) -> TenantIndex:
        return TenantIndex(
            folder, self.source, "model", DIMENSIONS,
            settings=self.settings, worker=BackgroundWorker(),
        )  # fmt: skip

    def put(self, document: Document) -> None:
        self.source.put([document])
        self.index.add_documents([document])
        self.index.advance(self.source.head())

    def add(self, text: str, context: str = "", session: str = "") -> None:
        self.last_id += 1
        self.put(event(self.last_id, text, context=context, session_id=session))

    def remove(self, doc_id: int) -> None:
        self.source.drop([doc_id])
        self.index.remove([doc_id])
        self.index.advance(self.source.head())

    def ids(self) -> list[int]:
        return sorted(self.source.documents)

    def do(self, change: tuple[object, ...]) -> None:
        known = self.ids()
        match change:
            case ["add", str(text), str(context), str(session)]:
                self.add(text or "a", context, session)
            case ["change", int(place), str(text)] if known:
                old = self.source.documents[known[place % len(known)]]
                self.put(replace(old, text=text or "b"))
            case ["remove", int(place)] if known:
                self.remove(known[place % len(known)])
            case ["commit"]:
                self.index._lexical.commit()
            case ["copy"]:
                self.index.write()
            case ["rest"]:
                self.index._lexical.rest(0.0)
            case ["open again"]:
                self.index.abandon()
                self.index.discard()
                self.index = self.opened(self.folder)


def answers(index: TenantIndex, query: str) -> list[object]:
    """Return all that an index says of a query's words."""
    said: list[object] = []
    for filter_ in (EVERYTHING, ONE_SESSION):
        selection = index.select(filter_)
        for weight in (0.0, 0.3):
            hits = index.search_lexical(query, 8, selection, context_weight=weight)
            said.append((index.columns.doc_id[hits.rows].tolist(), hits.scores.tolist()))
        said.append(index.word_evidence(query, selection, ["E-4412"]))
    return said


@hypothesis_settings(max_examples=150, deadline=None)
@given(changes=changes, queries=st.lists(queries, min_size=1, max_size=3))
def test_scores_are_those_of_one_segment_however_much_of_it_waits(
    tmp_path_factory: pytest.TempPathFactory,
    changes: Sequence[tuple[object, ...]],
    queries: Sequence[str],
) -> None:
    home = Home(tmp_path_factory.mktemp("changing"))
    for change in changes:
        home.do(change)
    before = [answers(home.index, query) for query in queries]
    home.index._lexical.commit()
    assert [answers(home.index, query) for query in queries] == before
    one = home.opened(tmp_path_factory.mktemp("one"))
    one.write()
    assert one.stats().lexical_waiting == 0
    assert [answers(one, query) for query in queries] == before
    for index in (home.index, one):
        index.close()


def test_scores_are_those_that_tantivy_computes(tmp_path: Path) -> None:
    documents = [
        event(i, f"the parser {'broke ' * (i % 7)}{'again ' * (3 * i)}", context="a parser")
        for i in range(1, 60)
    ]
    found = []
    for limit in (1_000, 0):
        words = LexicalIndex(tmp_path / str(limit), IndexSettings(counted_limit=limit))
        words.add(documents)
        words.commit()
        parsed = words.parse("parser broke", WEIGHTS)
        assert parsed is not None
        assert parsed.view.holds_all == bool(limit)
        matches = words.search_counted(parsed), words.search(parsed, 100)
        found.append({
            doc_id: score
            for match in matches
            for doc_id, score in zip(match.doc_ids.tolist(), match.scores.tolist(), strict=True)
        })  # fmt: skip
        words.close()
    assert len(found[0]) == len(documents)
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the files of a folder, with their sizes and the times of their last change."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(f): (f.stat().st_size, f.stat().st_mtime_ns) for f in files}


def threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "tenant", commit_delay_s=0.0)
    home.index._upkeep._worker.schedule(0.0, lambda: None)  # Its thread is there.
    yield home
    home.index.close()


def settled(home: Home) -> None:
    """Wait until the background has done what it was told to do at once."""
    done = threading.Event()
    home.index._upkeep._worker.schedule(0.0, done.set)
    assert done.wait(30.0)


def test_no_file_is_written_and_no_thread_made_for_a_single_write(home: Home) -> None:
    home.add("the first heron")
    home.index.write()
    assert home.index.search_lexical("heron", 9, home.index.select(EVERYTHING)).rows.size == 1
    settled(home)
    folders = home.folder, home.index._lexical._folder
    before, running = [*map(state, folders)], threads()
    for number in range(50):
        home.add(f"heron {number}")
        hits = home.index.search_lexical("heron", 99, home.index.select(EVERYTHING))
        assert hits.rows.size == number + 2
        settled(home)
        assert threads() <= running
    assert [*map(state, folders)] == before


@pytest.mark.parametrize(
    ("text", "enough"), [("heron", 256), ("heron " * 10_000, 17)], ids=["documents", "characters"]
)
def test_they_are_committed_when_there_is_enough_of_them(
    home: Home, text: str, enough: int
) -> None:
    for _ in range(enough - 1):
        home.add(text)
    settled(home)
    assert home.index.stats().lexical_waiting == enough - 1
    home.add(text)
    eventually(lambda: home.index.stats().lexical_waiting == 0)


def test_they_are_committed_when_nothing_has_come_for_long(tmp_path: Path) -> None:
    home = Home(tmp_path / "tenant", quiet_s=0.05)
    home.add("heron")
    eventually(lambda: home.index._lexical.copied == home.source.head())
    assert home.index.stats().lexical_waiting == 0
    home.index.close()


def test_they_are_committed_when_it_closes(home: Home) -> None:
    home.add("heron")
    home.index.close()
    again = LexicalIndex(home.folder / "index" / "lexical", home.settings)
    assert again.doc_ids().tolist() == [1]
    again.close()


def test_after_a_crash_they_come_from_the_feed_and_wait_again(home: Home) -> None:
    for number in range(300):
        home.add(f"heron {number}")
    home.index.write()
    for number in range(40):
        home.add(f"gull {number}")
    home.remove(5)
    home.do(("open again",))
    assert home.index.stats().lexical_waiting == 40
    assert not home.index.stats().lexical_writer
    selection = home.index.select(EVERYTHING)
    for query, count in (("gull", 40), ("heron", 299)):
        assert home.index.search_lexical(query, 400, selection).rows.size == count


@pytest.mark.parametrize("searched", [True, False])
def test_what_comes_is_counted_at_once_where_somebody_searches(
    tmp_path: Path, searched: bool
) -> None:
    words = LexicalIndex(tmp_path, IndexSettings())
    if searched:
        words.parse("heron", WEIGHTS)
    else:
        words._searched = float("-inf")
    words.add([event(1, "heron")])
    assert [one.is_counted for one in words._waiting.values()] == [searched]
    words.close()


@pytest.mark.parametrize("where", ["waiting", "committed"])
def test_what_is_removed_is_no_longer_counted(home: Home, where: str) -> None:
    home.add("heron")
    home.add("heron and gull")
    if where == "committed":
        home.index.write()
    assert home.index.search_lexical("gull", 9, home.index.select(EVERYTHING)).rows.size == 1
    home.remove(2)
    selection = home.index.select(EVERYTHING)
    assert home.index.search_lexical("gull", 9, selection).rows.size == 0
    assert home.index.word_evidence("gull", selection, []).occurring == 0.0


@pytest.mark.parametrize("doing", ["committed", "rebuilt"])
def test_nothing_of_a_word_is_left_once_what_was_removed_is(home: Home, doing: str) -> None:
    home.add("heron")
    home.add("zeppelin")
    home.index.write()
    assert home.index.search_lexical("zeppelin", 9, home.index.select(EVERYTHING)).rows.size == 1
    home.remove(2)
    if doing == "committed":
        home.index._lexical.commit()
        left = home.index
    else:
        home.index.abandon()
        left = home.index.rebuilt(clean=True)
        left.write()
    view = left._lexical._seen()
    kept = [*(view.committed.counts() or {}).values(), view.counted._words.tobytes()]
    kept += [counts for one in view.waiting.values() for counts in [one.counts]]
    assert not any(b"zeppelin" in counts for counts in kept)
    assert any(b"heron" in counts for counts in kept)
    if doing == "rebuilt":
        folders = home.folder, left._lexical._folder
        files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
        assert not any(b"zeppelin" in file.read_bytes() for file in files)
        left.close()


@pytest.mark.parametrize("count", [1, 30])
def test_more_than_can_be_counted_are_searched_in_tantivys_files(
    tmp_path: Path, count: int
) -> None:
    home = Home(tmp_path / "tenant", counted_limit=20, commit_from=10)
    for number in range(1, count + 1):
        home.add(f"heron {number}")
    home.index.write()
    view = home.index._lexical._seen()
    assert view.holds_all == (count <= 20)
    for doc_id in home.ids()[15:]:
        home.remove(doc_id)
    home.do(("commit",))
    hits = home.index.search_lexical("heron", 50, home.index.select(EVERYTHING))
    assert sorted(home.index.columns.doc_id[hits.rows].tolist()) == home.ids()
    home.index.close()
