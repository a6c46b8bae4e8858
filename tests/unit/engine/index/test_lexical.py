"""Words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.files import LexicalDamaged
from mneme_server.engine.index.words.lexical import LexicalIndex
from mneme_server.features.learn.model import LESSON
from unit.engine.index.memory_source import event

TEXT = {WordField.TEXT: 1.0}


def opened(folder: Path, **options: int) -> LexicalIndex:
    return LexicalIndex(folder, IndexSettings(**options))


def find(
    lexical: LexicalIndex, query: str, weights: dict[WordField, float] | None = None
) -> list[int]:
    return [doc_id for doc_id, _ in scored(lexical, query, weights)]


def scored(
    lexical: LexicalIndex, query: str, weights: dict[WordField, float] | None = None
) -> list[tuple[int, float]]:
    parsed = lexical.parse(query, weights or TEXT)
    if parsed is None:
        return []
    found: list[tuple[int, float]] = []
    for match in (lexical.search(parsed, 100), lexical.search_counted(parsed)):
        found += zip(match.doc_ids.tolist(), match.scores.tolist(), strict=True)
    return sorted(found, key=lambda hit: (-hit[1], -hit[0]))


def test_words_are_found_by_their_stems_whatever_their_case_and_accents(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "The Migrations were FAILING"), event(2, "a café in Paris")])
    assert find(lexical, "migration fails") == [1]
    assert find(lexical, "cafe") == [2]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("支付网关的密钥已经过期了所以所有的退款请求都失败了需要立即更换新的密钥才行", "密钥过期"),
        ("昨日の夜に決済サーバーの証明書が切れたので再発行しました", "証明書はいつ切れた?"),
        ("결제서버인증서가만료되어다시발급했습니다", "인증서 만료"),
    ],
)
def test_words_are_found_in_what_is_written_without_spaces(
    tmp_path: Path, text: str, query: str
) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, text), event(2, "今天天气很好 今日はいい天気 오늘은날씨가좋다")])
    assert find(lexical, query)[0] == 1
    lexical.commit()
    assert find(lexical, query)[0] == 1


def test_what_waits_is_found_at_once(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "first")])
    assert lexical.waiting == 1
    assert find(lexical, "first") == [1]
    lexical.commit()
    assert lexical.waiting == 0
    assert find(lexical, "first") == [1]


def test_what_waits_is_scored_as_what_is_committed(tmp_path: Path) -> None:
    lexical = opened(tmp_path, counted_limit=0)
    texts = [
        "the parser broke again",
        "the build broke",
        "a long tale of a parser " + "and more " * 9,
    ]
    lexical.add([event(i, text, context="parser") for i, text in enumerate(texts * 5, 1)])
    lexical.commit()
    lexical.add([event(100 + i, text, context="parser") for i, text in enumerate(texts, 1)])
    for query in ("parser", "broke again", "a tale of more parsers"):
        hits = dict(scored(lexical, query, {WordField.TEXT: 1.0, WordField.CONTEXT: 0.3}))
        assert {100 + i: hits.get(i) for i in (1, 2, 3) if i in hits} == pytest.approx(
            {doc_id: score for doc_id, score in hits.items() if doc_id > 100}, rel=1e-5
        )


def test_the_first_documents_are_scored_as_they_will_be_when_they_are_committed(
    tmp_path: Path,
) -> None:
    lexical = opened(tmp_path)
    texts = ["the parser broke", "the build broke", "a tale of the parser", "no news"]
    lexical.add([event(i, text) for i, text in enumerate(texts, 1)])
    before = scored(lexical, "parser broke tale")
    lexical.commit()
    assert before == [(i, pytest.approx(s)) for i, s in scored(lexical, "parser broke tale")]


def test_of_a_replaced_document_only_the_new_words_count_while_it_waits(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "before"), event(2, "before")])
    lexical.commit()
    lexical.add([event(1, "after")])
    assert find(lexical, "before after") == [2, 1]
    assert find(lexical, "before") == [2]


def test_when_much_waits_a_search_commits_it(tmp_path: Path) -> None:
    lexical = opened(tmp_path, counted_limit=100)
    lexical.add([event(i, f"word{i}") for i in range(1, 300)])
    assert find(lexical, "word250") == [250]
    assert lexical.waiting == 0


def test_changes_while_a_commit_is_written_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexical = opened(tmp_path)
    write = lexical._write

    def write_while_others_change(*args: Any, counted: bool) -> None:
        monkeypatch.setattr(lexical, "_write", write)
        lexical.add([event(1, "replaced")])
        lexical.remove([2])
        lexical.add([event(4, "late")], replace=False)
        write(*args, counted=counted)

    monkeypatch.setattr(lexical, "_write", write_while_others_change)
    lexical.add([event(1, "first"), event(2, "second"), event(3, "third")])
    lexical.commit()
    assert lexical.waiting == 2
    lexical.commit()
    assert lexical.holds_exactly(np.array([1, 3, 4]))
    assert find(lexical, "first second third replaced late") == [4, 3, 1]


def test_what_could_not_be_committed_keeps_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexical = opened(tmp_path)

    def fail(*_: object, counted: bool) -> None:
        raise ValueError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(lexical, "_write", fail)
        lexical.add([event(i, f"word{i}") for i in range(1, 1_200)])
        assert find(lexical, "word77") == [77]
        assert lexical.waiting == 1_199
    lexical.commit()
    assert find(lexical, "word77") == [77]
    assert lexical.holds_exactly(np.arange(1, 1_200))


def test_many_waiting_documents_are_committed_without_a_search(tmp_path: Path) -> None:
    lexical = opened(tmp_path, commit_after=10)
    lexical.add([event(i, "word") for i in range(1, 10)])
    lexical.keep_up()
    assert lexical.waiting == 9
    lexical.add([event(10, "word")])
    lexical.keep_up()
    assert lexical.waiting == 0


def test_words_of_the_context_count_only_when_they_are_asked_for(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add(
        [event(1, "yes, on Tuesday", context="did you fix the parser?"), event(2, "parser")]
    )
    assert find(lexical, "parser") == [2]
    both = {WordField.TEXT: 1.0, WordField.CONTEXT: 0.5}
    assert find(lexical, "parser", both) == [2, 1]


def test_the_score_is_bm25_of_the_text_plus_the_weighted_one_of_the_context(tmp_path: Path) -> None:
    lexical = opened(tmp_path)
    lexical.add([event(1, "parser broke", context="the parser"), event(2, "nothing of that kind")])

    lexical.commit()

    def score(weights: dict[WordField, float]) -> float:
        return scored(lexical, "parser", weights)[0][1]

    both = score({WordField.TEXT: 1.0, WordField.CONTEXT: 0.25})
    assert both == pytest.approx(score(TEXT) + 0.25 * score({WordField.CONTEXT: 1.0}), rel=1e-5)


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
    query = " ".join(["common", "everyday", *(f"unknown{i}" for i in range(2_000)), "zebra"])
    assert lexical.terms(query) == ["common", "everyday", "zebra"]
    assert 100 in find(lexical, query)
    assert len(lexical.terms(" ".join(str(i) for i in range(1, 50)))) == 16


def test_a_search_can_be_restricted_to_some_documents(tmp_path: Path) -> None:
    lexical = opened(tmp_path, counted_limit=0)
    lexical.add([event(i, "same words", session_id=f"s{i % 3}") for i in range(1, 30)])
    lexical.add([event(30, "same words", kind=LESSON)])
    lexical.commit()
    parsed = lexical.parse("words", TEXT)
    assert parsed is not None
    full = lexical.search(parsed, 100).scores[0]
    for within, expected in (
        (lexical.these([3, 7, 999]), [3, 7]),
        (lexical.between(5, 9), [5, 6, 7, 8, 9]),
        (lexical.in_sessions(["s0", "s9"]), list(range(3, 30, 3))),
        (lexical.of_kinds([LESSON.name]), [30]),
    ):
        match = lexical.search(parsed, 100, within)
        assert sorted(match.doc_ids.tolist()) == expected
        assert match.scores == pytest.approx([full] * len(expected))


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
    held = [lexical.has_writer]
    lexical.add([event(1, "word")])
    lexical.commit()
    held.append(lexical.has_writer)
    lexical.release_writer()
    held.append(lexical.has_writer)
    assert held == [False, True, False]
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
    damaged = {"flipped": data, "truncated": data[:-5], "emptied": bytearray()}
    file.write_bytes(damaged[damage])
    with pytest.raises(LexicalDamaged):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json"])
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
