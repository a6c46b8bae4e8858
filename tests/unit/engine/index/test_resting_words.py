"""Words that nobody uses rest: tantivy lets go of their files until somebody asks or writes."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.tenant_index import IndexPart, TenantIndex
from mneme_server.engine.index.upkeep import BackgroundWorker
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.lexical import LexicalIndex
from unit.engine.index.memory_source import DIMENSIONS, MemorySource, event, eventually, units

NEVER, AT_ONCE = 86_400.0, 0.0
EVERYTHING = DocumentFilter()
WEIGHTS = {WordField.TEXT: 1.0, WordField.CONTEXT: 0.3}
TEXTS = [
    "the heron stood in the reeds",
    "a heron flew away",
    "der Reiher stand im Schilf und wartete auf den Abend",
    "le butor attendait dans les roseaux pendant toute la journée",
]


@pytest.fixture
def words(tmp_path: Path) -> Iterator[LexicalIndex]:
    # However few there are, what comes later waits for a commit.
    words = LexicalIndex(tmp_path / "copy", IndexSettings(commit_share=1.0))
    words.add([event(i, text, context="birds") for i, text in enumerate(TEXTS, 1)])
    words.release_writer()
    yield words
    words.close()


def found(words: LexicalIndex, query: str) -> list[tuple[int, float]]:
    """Return what a query finds, with the scores."""
    parsed = words.parse(query, WEIGHTS)
    if parsed is None:
        return []
    matches = words.search(parsed, 100), words.search_counted(parsed)
    hits = [hit for m in matches for hit in zip(m.doc_ids.tolist(), m.scores.tolist(), strict=True)]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def ids(words: LexicalIndex, query: str) -> set[int]:
    return {doc_id for doc_id, _ in found(words, query)}


def test_words_that_rested_answer_as_before(words: LexicalIndex) -> None:
    queries = ("heron reeds", "Reiher im Schilf", "les roseaux", "birds", "nothing of this")
    before = [found(words, query) for query in queries]
    assert words.rest(AT_ONCE)
    assert not words.is_open
    assert [found(words, query) for query in queries] == before
    assert words.is_open


def test_resting_words_keep_no_searcher(words: LexicalIndex) -> None:
    found(words, "heron")
    view = weakref.ref(words._seen())
    assert words.rest(AT_ONCE)
    assert view() is None


def test_words_do_not_rest_that_were_used_or_are_being_written(words: LexicalIndex) -> None:
    found(words, "heron")
    assert not words.rest(NEVER)
    words.add([event(9, "a bittern")])
    words.commit()
    assert words.has_writer
    assert not words.rest(AT_ONCE)
    assert words.is_open


def test_a_search_under_way_ends_with_what_it_began_with(words: LexicalIndex) -> None:
    parsed = words.parse("heron", WEIGHTS)
    assert parsed is not None
    before = words.search(parsed, 10)
    assert words.rest(AT_ONCE)
    after = words.search(parsed, 10)
    assert after.doc_ids.tolist() == before.doc_ids.tolist()


def test_what_comes_and_goes_while_words_rest_is_taken_in(words: LexicalIndex) -> None:
    assert words.rest(AT_ONCE)
    words.add([event(5, "a grey heron"), event(1, "the bittern stood in the reeds")])
    words.remove([2])
    assert not words.is_open
    # Until they are committed the owner's mask hides those that went.
    assert ids(words, "heron") - {2} == {5}
    assert words.rest(AT_ONCE)
    words.commit()
    assert ids(words, "heron") == {5}
    assert ids(words, "bittern") == {1}


def test_resting_words_are_copied_and_found_when_opened_again(tmp_path: Path) -> None:
    words = LexicalIndex(tmp_path, IndexSettings())
    words.add([event(1, "the heron")])
    words.release_writer()
    assert words.rest(AT_ONCE)
    words.add([event(2, "another heron")])
    words.close()
    again = LexicalIndex(tmp_path, IndexSettings())
    assert ids(again, "heron") == {1, 2}
    again.close()


def test_discarded_while_they_rest_they_still_answer_who_was_about_to_ask(
    words: LexicalIndex,
) -> None:
    before = found(words, "heron")
    assert words.rest(AT_ONCE)
    words.discard()
    assert found(words, "heron") == before
    assert not words.rest(AT_ONCE)


def opened(folder: Path, source: MemorySource, **settings: float) -> TenantIndex:
    return TenantIndex(
        folder,
        source,
        "m",
        DIMENSIONS,
        settings=IndexSettings(**settings),  # type: ignore[arg-type]
    )


def with_herons(count: int) -> MemorySource:
    source = MemorySource()
    source.put([event(i, f"heron {i} in the reeds") for i in range(1, count + 1)])
    source.embed(range(1, count + 1), units(count))
    return source


def rows(index: TenantIndex) -> list[int]:
    hits = index.search_lexical("heron", 100, index.select(EVERYTHING))
    return [int(row) for row in hits.rows]


def test_an_index_that_nobody_uses_has_its_words_rest_time_and_again(tmp_path: Path) -> None:
    index = opened(tmp_path, with_herons(20), words_unused_s=0.01, quiet_s=0.01)
    before = None
    for _ in range(3):
        eventually(lambda: not index._lexical.is_open)
        hits = rows(index)
        assert len(hits) == 20
        assert before in (None, hits)
        before = hits
    index.add_documents([event(21, "one more heron")])
    assert len(rows(index)) == 21
    eventually(lambda: index.stats().lexical_waiting == 0 and not index._lexical.is_open)
    assert len(rows(index)) == 21
    index.close()


class CountedWorker(BackgroundWorker):
    """Keeps what is to be done, and does nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[Callable[[], None]] = []

    def schedule(self, delay_s: float, run: Callable[[], None]) -> None:
        self.due.append(run)


def test_an_index_that_is_searched_as_it_is_looked_at_is_looked_at_once_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = CountedWorker()
    index = TenantIndex(tmp_path, with_herons(1), "m", DIMENSIONS, worker=worker)
    index.write()
    look = worker.due[-1]
    worker.due.clear()
    rest = index._lexical.rest

    def rest_while_somebody_asks(unused_s: float) -> bool:
        assert rows(index) == [0]
        return rest(unused_s)

    monkeypatch.setattr(index._lexical, "rest", rest_while_somebody_asks)
    look()
    assert len(worker.due) == 1
    index.close()


def flip(file: Path) -> int:
    return file.write_bytes(bytes(byte ^ 0xFF for byte in file.read_bytes()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: [flip(file) for file in folder.glob("*.term")],
        lambda folder: [file.write_bytes(b"") for file in folder.glob("*.idx")],
        lambda folder: [file.unlink() for file in folder.glob("*.fieldnorm")],
        lambda folder: (folder / "meta.json").write_text("{"),
        lambda folder: [file.unlink() for file in folder.iterdir()],
    ],
    ids=["flipped", "emptied", "missing", "no description", "all gone"],
)
def test_words_that_were_damaged_while_they_rested_are_noticed_and_built_again(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    index = opened(tmp_path, with_herons(20), words_unused_s=NEVER)
    index.write()
    before = rows(index)
    assert index._lexical.rest(AT_ONCE)
    damage(index._lexical._folder)
    assert rows(index) == []
    assert index.failed_parts == {IndexPart.WORDS}
    index.abandon()
    built = index.rebuilt()
    index.discard()
    assert rows(built) == before
    built.close()


def test_damage_that_a_commit_comes_upon_first_is_noticed_by_the_search_after_it(
    tmp_path: Path,
) -> None:
    index = opened(tmp_path, with_herons(20), words_unused_s=NEVER, commit_after=1)
    index.write()
    assert index._lexical.rest(AT_ONCE)
    for file in index._lexical._folder.iterdir():
        file.unlink()
    index.add_documents([event(21, "one more heron")])
    index.keep_up()  # It fails, and its document waits.
    assert index.stats().lexical_waiting == 1
    assert rows(index) == []
    assert index.failed_parts == {IndexPart.WORDS}
    index.close()


STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 12), st.sampled_from(TEXTS)),
    st.tuples(st.just("remove"), st.integers(1, 12)),
    st.tuples(st.sampled_from(["rest", "commit", "release", "reopen", "ask"])),
)


@given(st.lists(STEPS, max_size=25))
@hypothesis_settings(max_examples=40, deadline=None)
def test_whenever_words_rest_they_hold_what_was_put_there(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("words")
    words, there = LexicalIndex(folder, IndexSettings()), dict[int, str]()
    for step in steps:
        match step:
            case ("add", int(number), str(text)):
                words.add([event(number, text)])
                there[number] = text
            case ("remove", int(number)):
                words.remove([number])
                there.pop(number, None)
            case ("rest",):
                words.rest(AT_ONCE)
            case ("commit",):
                words.commit()
            case ("release",):
                words.release_writer()
            case ("reopen",):
                words.close()
                words = LexicalIndex(folder, IndexSettings())
            case ("ask",):
                herons = {number for number, text in there.items() if "heron" in text}
                assert ids(words, "heron") & there.keys() == herons
    words.commit()
    assert sorted(words.doc_ids().tolist()) == sorted(there)
    words.close()


def test_words_rest_while_many_ask_and_write(tmp_path: Path) -> None:
    words = LexicalIndex(tmp_path, IndexSettings(commit_after=20))
    words.add([event(i, "this heron stays") for i in range(1, 11)])
    words.release_writer()
    over, rested = threading.Event(), []

    def ask(_: int) -> None:
        while not over.is_set():
            assert ids(words, "stays") == set(range(1, 11))
            assert words.tells("heron")
            assert words.words_of("heron") == [["heron"]]

    def rest() -> None:
        while not over.is_set():
            rested.append(words.rest(AT_ONCE))

    with ThreadPoolExecutor(4) as pool:
        tasks = [*(pool.submit(ask, n) for n in range(3)), pool.submit(rest)]
        try:
            for step in range(60):
                first = 100 + step * 8
                words.add([event(i, "one heron more") for i in range(first, first + 8)])
                words.keep_up()
                words.remove([first])
                if step % 5 == 4:
                    words.release_writer()
        finally:
            over.set()
        for task in tasks:
            task.result()
    words.commit()
    assert any(rested)
    wanted = {*range(1, 11), *(100 + n for n in range(60 * 8) if n % 8)}
    assert set(words.doc_ids().tolist()) == wanted
    words.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
def test_resting_words_cost_no_thread(tmp_path: Path) -> None:
    """In a process of its own, where nothing else has an index open."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNTING, str(tmp_path)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


_COUNTING = """
import sys, time
from pathlib import Path
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.lexical import LexicalIndex
from mneme_server.engine.index.settings import IndexSettings

def threads():
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum("tantivy" in name for name in names)

def until(number):
    over = time.monotonic() + 60
    while threads() != number:
        assert time.monotonic() < over, f"{threads()} threads, not {number}"
        time.sleep(0.05)

indexes = [LexicalIndex(Path(sys.argv[1]) / str(n), IndexSettings()) for n in range(3)]
until(3)
for number, index in enumerate(indexes, 1):
    assert index.rest(0.0)
    until(3 - number)
assert indexes[0].parse("heron", {WordField.TEXT: 1.0}) is not None
until(1)
"""
