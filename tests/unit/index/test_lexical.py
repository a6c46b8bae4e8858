"""Words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mneme_server.index.lexical import Field, LexicalDamaged, LexicalIndex
from mneme_server.index.settings import IndexSettings
from unit.index.memory_source import event

TEXT = {Field.TEXT: 1.0}


def opened(folder: Path, **options: int) -> LexicalIndex:
    return LexicalIndex(folder, IndexSettings(**options))


def find(lexical: LexicalIndex, query: str, weights: dict[Field, float] | None = None) -> list[int]:
    parsed = lexical.parsed(query, weights or TEXT)
    if parsed is None:
        return []
    found: list[int] = lexical.search(parsed, 100).doc_ids.tolist()
    return found


def test_words_are_found_by_their_stems_whatever_their_case_and_accents(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "The Migrations were FAILING"), event(2, "a café in Paris")])
    assert find(lexical, "migration fails") == [1]
    assert find(lexical, "cafe") == [2]


def test_what_waits_is_found_at_once(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "first")])
    assert lexical.waiting == 1
    assert find(lexical, "first") == [1]
    assert lexical.waiting == 0


def test_many_waiting_documents_are_committed_without_a_search(tmp_path: Path) -> None:
    lexical = opened(tmp_path, commit_after=10)
    lexical.add([event(i, "word") for i in range(1, 12)])
    assert lexical.waiting == 0


def test_words_of_the_context_count_only_when_they_are_asked_for(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add(
        [event(1, "yes, on Tuesday", context="did you fix the parser?"), event(2, "parser")]
    )
    assert find(lexical, "parser") == [2]
    both = {Field.TEXT: 1.0, Field.CONTEXT: 0.5}
    assert find(lexical, "parser", both) == [2, 1]


def test_the_score_is_bm25_of_the_text_plus_the_weighted_one_of_the_context(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "parser broke", context="the parser"), event(2, "nothing of that kind")])

    def score(weights: dict[Field, float]) -> float:
        parsed = lexical.parsed("parser", weights)
        assert parsed is not None
        return float(lexical.search(parsed, 5).scores[0])

    both = score({Field.TEXT: 1.0, Field.CONTEXT: 0.25})
    assert both == pytest.approx(score(TEXT) + 0.25 * score({Field.CONTEXT: 1.0}), rel=1e-5)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "🦊🔥",
        '"unbalanced AND (',
        "text:secret",
        "doc_id:1",
        "* OR ?",
        "+must -not ~fuzzy^3",
        "[a TO z]",
        "\\",
        "a\x00b",
        "x" * 5_000,
        "field:[1 TO *] }{",
    ],
)
def test_a_query_is_never_read_as_syntax(tmp_path: Path, query: str) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "plain words")])
    assert find(lexical, query) == []
    assert find(lexical, f"{query} words") == [1]


def test_words_that_are_operators_elsewhere_are_words(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "do NOT retry"), event(2, "retry OR give up")])
    assert sorted(find(lexical, "NOT retry")) == [1, 2]


def test_stop_words_are_dropped_unless_there_is_nothing_else(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "what is it?"), event(2, "tea")])
    assert find(lexical, "what is tea") == [2]
    assert find(lexical, "what is it") == [1]


def test_of_a_very_long_query_the_rarest_words_count(tmp_path: Path) -> None:
    lexical = opened(tmp_path, query_terms=16)
    lexical.add([event(i, f"common everyday {i}") for i in range(1, 50)])
    lexical.add([event(100, "zebra")])
    lexical.commit()
    query = " ".join(["common", "everyday", *(f"unknown{i}" for i in range(5_000)), "zebra"])
    assert lexical.terms(query) == ["common", "everyday", "zebra"]
    assert 100 in find(lexical, query)
    assert len(lexical.terms(" ".join(str(i) for i in range(1, 50)))) == 16


def test_a_search_can_be_restricted_to_some_documents(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(i, "same words") for i in range(1, 30)])
    parsed = lexical.parsed("words", TEXT)
    assert parsed is not None
    match = lexical.search(parsed, 10, [3, 7, 999])
    assert sorted(match.doc_ids.tolist()) == [3, 7]
    assert match.exhausted
    free = lexical.search(parsed, 100)
    assert match.scores[0] == pytest.approx(free.scores[0])
    within = lexical.search_between(parsed, 100, 5, 9)
    assert sorted(within.doc_ids.tolist()) == [5, 6, 7, 8, 9]
    assert within.scores[0] == pytest.approx(free.scores[0])


def test_a_document_added_again_is_replaced(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "before")])
    lexical.commit()
    lexical.add([event(1, "after")])
    assert find(lexical, "before") == []
    assert find(lexical, "after") == [1]


def test_a_removed_document_is_gone_after_the_next_commit(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "word"), event(2, "word")])
    lexical.commit()
    lexical.remove([1])
    lexical.commit()
    assert find(lexical, "word") == [2]
    assert lexical.holds_exactly(np.array([2]))


def test_what_was_committed_is_there_when_opened_again(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(i, f"word{i}") for i in range(1, 100)])
    lexical.close()
    again = opened(tmp_path)
    assert sorted(again.doc_ids().tolist()) == list(range(1, 100))
    assert again.holds_exactly(np.arange(1, 100))
    assert not again.holds_exactly(np.arange(2, 101))
    assert find(again, "word42") == [42]


def test_the_writer_is_held_only_while_it_is_needed(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    assert not lexical.has_writer
    lexical.add([event(1, "word")])
    lexical.commit()
    assert lexical.has_writer
    lexical.release_writer()
    assert not lexical.has_writer
    lexical.add([event(2, "word")])
    assert sorted(find(lexical, "word")) == [1, 2]


def written(folder: Path) -> None:
    lexical = opened(folder)
    lexical.add([event(i, f"some words {i}") for i in range(1, 200)])
    lexical.close()


@pytest.mark.parametrize("pattern", ["*.idx", "*.term", "*.store", "*.fast", "*.fieldnorm"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "emptied"])
def test_a_damaged_segment_is_noticed_when_opened(
    tmp_path: Path, pattern: str, damage: str
) -> None:
    written(tmp_path)
    file = next(tmp_path.glob(pattern))
    data = bytearray(file.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    file.write_bytes({"truncated": data[:-5], "emptied": b""}.get(damage, bytes(data)))
    with pytest.raises(LexicalDamaged):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["meta.json", "mneme-checksums.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_damaged_description_is_noticed_when_opened(
    tmp_path: Path, name: str, content: bytes
) -> None:
    written(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LexicalDamaged):
        opened(tmp_path)


def test_a_missing_segment_is_noticed_when_opened(tmp_path: Path) -> None:
    written(tmp_path)
    for file in tmp_path.glob("*.idx"):
        file.unlink()
    with pytest.raises(LexicalDamaged):
        opened(tmp_path)


@hypothesis_settings(max_examples=50, deadline=None)
@given(query=st.text(max_size=80))
def test_any_text_can_be_searched_for(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    lexical = opened(tmp_path_factory.mktemp("words"))
    lexical.add([event(1, f"needle {query}"), event(2, "hay")])
    assert 1 in find(lexical, f"needle {query}")
