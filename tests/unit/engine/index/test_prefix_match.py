"""Which texts a question's words find where there is no index."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.corpus.cold_search import TextPage
from mneme_server.engine.index.prefix_match import matching, starts_of


def of(said: Sequence[str]) -> TextPage:
    encoded = [text.encode() for text in said]
    sizes = np.array([len(text) for text in encoded], np.int64)
    return TextPage(np.arange(1, len(said) + 1, dtype=np.int64), sizes, b" ".join(encoded))


def found(query: str, *said: str, count: int = 10) -> list[int]:
    return sorted(matching(query, [of(said)], count)[1].tolist())


def begins(text: str, form: bytes) -> bool:
    """Tell whether a word of the text begins so; of what is no ASCII, whether it is there."""
    before = b"(?<![0-9a-z])" if form[:1].isalnum() else b""
    return re.search(before + re.escape(form), text.encode().lower()) is not None


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("registry", "the registry moved"),
        ("registries", "a registry"),
        ("HERON", "two herons"),
        ("heron", "HERON"),
        ("naïve", "how Naïve"),
        ("NAÏVE", "how naïve"),
        ("naïve", "HOW NAÏVE"),
        ("ñandú", "el Ñandú"),
        ("port 5000", "at 5000"),
        ("error_code", "the error_code"),
        ("internationalised", "on internationalising it"),
    ],
)
def test_a_word_is_found_in_any_case_and_with_another_ending(query: str, said: str) -> None:
    assert found(query, "nothing of it", said, "") == [2]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("数据库在哪里？", "数据库已经迁移到法兰克福的机房"),
        ("花瓶是谁打碎的？", "我们的猫昨天晚上把客厅的花瓶打碎了"),
        ("猫", "我们的猫昨天晚上把客厅的花瓶打碎了"),
        ("的", "我们的猫"),
        ("証明書はいつ切れましたか", "決済サーバーの証明書が切れたので再発行しました"),
        ("서버에서 오류가", "서버가 멈췄다"),
        ("KeyError异常", "the KeyErrors again"),
        ("KeyError异常", "抛出KeyError了"),
    ],
)
def test_what_is_written_without_spaces_is_found_by_its_pairs_as_with_an_index(
    query: str, said: str
) -> None:
    assert found(query, "昨日は来月を予約済みです", said, "nothing of it") == [2]


@pytest.mark.parametrize("said", ["charred", "discard", "a scar", "3card"])
def test_a_word_is_not_found_inside_another(said: str) -> None:
    assert found("card", said) == []


def test_words_that_only_say_how_a_question_is_put_find_nothing_unless_they_are_all() -> None:
    assert found("where is the heron", "where is the otter", "heron") == [2]
    assert found("who was that", "that", "otter") == [1]


def test_what_has_the_rarer_word_or_is_shorter_comes_first() -> None:
    many = ["the weather is fair"] * 20
    assert found("weather heron", *many, "a heron", count=1) == [21]
    assert found("heron", "a heron and much else that nobody asked for", "heron", count=1) == [2]


def test_of_no_texts_nothing_is_found() -> None:
    assert found("heron") == []
    assert found("", "heron") == []
    assert found("?!", "heron?!") == []


WORDS = st.text("abB1_é ", max_size=14)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=8))
def test_all_texts_are_found_that_have_a_word_which_begins_so(query: str, said: list[str]) -> None:
    forms = [form for forms in starts_of(query) for form in forms]
    having = [n for n, text in enumerate(said, 1) if any(begins(text, form) for form in forms)]
    assert found(query, *said) == having


@given(WORDS, st.lists(WORDS, min_size=2, max_size=8), st.data())
def test_in_pages_the_same_is_found_as_at_once(
    query: str, said: list[str], data: st.DataObject
) -> None:
    whole = of(said)
    place = data.draw(st.integers(1, len(said) - 1))
    first, rest = of(said[:place]), of(said[place:])
    pages = [first, rest._replace(doc_ids=rest.doc_ids + place)]
    count = data.draw(st.integers(1, len(said)))
    for one, other in zip(
        matching(query, [whole], count), matching(query, pages, count), strict=True
    ):
        assert one.tolist() == other.tolist()


@given(st.lists(st.text(max_size=30), min_size=1, max_size=12), st.data())
def test_a_text_is_found_by_each_of_its_words(said: list[str], data: st.DataObject) -> None:
    """Words as they are split for a question: in the spelling that the text has."""
    place = data.draw(st.integers(0, len(said) - 1))
    starts = starts_of(said[place])
    lowered = said[place].encode().lower()
    if any(form in lowered for forms in starts for form in forms):
        at = [lowered.find(form) for forms in starts for form in forms if form in lowered]
        begins = any(number == 0 or not lowered[number - 1 : number].isalnum() for number in at)
        assert not begins or place + 1 in found(said[place], *said, count=len(said))


def test_texts_are_found_in_each_of_unicodes_forms() -> None:
    decomposed = ["the Bru\u0308cke", "e\u0301", "plain", "\u1109\u1165\u110b\u116e\u11af is far"]
    assert found("Brücke", *decomposed) == [1]
    assert found("Bru\u0308cke", "plain", "the Brücke") == [2]
    assert found("서울", *decomposed) == [4]
    assert found("far", *decomposed) == [4]
