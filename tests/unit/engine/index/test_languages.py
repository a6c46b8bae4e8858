"""Telling languages, and finding words by their stems."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.words.analysis import WordField, Words
from mneme_server.engine.index.words.languages import language_of
from mneme_server.engine.index.words.lexical import LexicalIndex
from unit.engine.index.memory_source import event

TEXTS = [
    "Die Rechnungen wurden gestern von der Buchhaltung bezahlt",
    "Les réunions du lundi ont été annulées par le directeur",
    "Las facturas fueron pagadas por la empresa el martes",
    "我们的猫昨天把花瓶打碎了",
    "昨日の夜に証明書が切れたので再発行しました",
    "The migrations were failing on the staging database",
]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo ist die Rechnung?", "de"),
        ("Wann endet der Vertrag", "de"),
        ("Rechnungen für März bezahlt", "de"),
        ("Où est la facture ?", "fr"),
        ("Quand la réunion a-t-elle lieu ?", "fr"),
        ("¿Dónde está la factura?", "es"),
        ("el servidor no responde a las peticiones", "es"),
        ("Where is the invoice?", "en"),
        ("The café in Paris is where we met Müller", "en"),
        ("We moved to Los Angeles de la Cruz", ""),
        ("Müller account closed", ""),
        ("ERROR 500 connection refused", ""),
        ("y[d] = c * m + l - s + a", ""),
        ("languages: en, de, fr, es", ""),
        ("我们的猫", ""),
        ("", ""),
        ("\ud800", ""),
    ],
)
def test_a_language_is_told_by_its_commonest_words_or_not_at_all(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.fixture(params=["waiting", "committed"])
def lexical(tmp_path: Path, request: pytest.FixtureRequest) -> LexicalIndex:
    index = LexicalIndex(tmp_path, IndexSettings())
    index.add([event(number, text) for number, text in enumerate(TEXTS, 1)])
    if request.param == "committed":
        index.commit()
    return index


def found(lexical: LexicalIndex, query: str) -> set[int]:
    parsed = lexical.parse(query, {WordField.TEXT: 1.0})
    if parsed is None:
        return set()
    matches = lexical.search(parsed, 100), lexical.search_counted(parsed)
    return {int(doc_id) for match in matches for doc_id in match.doc_ids}


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Wann wurde die Rechnung bezahlt?", 1),
        ("Rechnung", 1),
        ("Rechnungen", 1),
        ("Quand la réunion a-t-elle été annulée ?", 2),
        ("reunion", 2),
        ("¿Quién pagó la factura?", 3),
        ("factura", 3),
        ("猫", 4),
        ("猫在哪里", 4),
        ("花瓶是谁打碎的", 4),
        ("証明書はいつ切れましたか", 5),
        ("証", 5),
        ("which migration failed", 6),
    ],
)
def test_words_are_found_by_the_stems_of_their_language(
    lexical: LexicalIndex, query: str, answer: int
) -> None:
    assert found(lexical, query) == {answer}


@pytest.mark.parametrize(
    "query", ["Wo ist der und wie?", "¿Qué es?", "是什么", "ですか", "what is it"]
)
def test_words_that_only_say_how_a_question_is_put_tell_nothing(
    lexical: LexicalIndex, query: str
) -> None:
    assert not lexical.tells(query)


def test_a_query_in_no_certain_language_is_searched_by_every_form_that_occurs(
    lexical: LexicalIndex,
) -> None:
    assert lexical.terms("Rechnungen") == ["rechnung"]
    assert lexical.terms("migrations Rechnungen") == ["migrat", "rechnung"]
    assert lexical.terms("unheard") == ["unheard"]


def test_an_english_query_has_english_stems_beside_other_languages(lexical: LexicalIndex) -> None:
    assert lexical.terms("what was failing on the staging database") == ["fail", "stage", "databas"]


def test_a_short_text_is_read_as_what_was_said_before_it(tmp_path: Path) -> None:
    lexical = LexicalIndex(tmp_path, IndexSettings())
    lexical.add([event(1, "Rechnungen", context="Was wurde von der Firma bezahlt?")])
    assert found(lexical, "Welche Rechnung war das?") == {1}


def test_the_words_of_an_identifier_are_known_as_texts_of_any_language_have_them(
    lexical: LexicalIndex,
) -> None:
    assert ["migrat"] in lexical.words_of("migrations")
    assert ["migration"] in lexical.words_of("migrations")


@hypothesis_settings(max_examples=100)
@given(query=st.text(max_size=60))
def test_any_query_can_be_read_beside_texts_in_other_languages(query: str) -> None:
    words = Words()
    asked = words.asked(query, ["de", "fr"])
    assert all(asked.words)
    assert words.tells(query, ["de"]) <= bool(asked.words)
    assert words.of_name(query, ["es"])
