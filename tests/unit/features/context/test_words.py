"""What a message says beyond courtesies, and which of its words tell what it is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.context.words import (
    coverage,
    cut,
    ended,
    own_words,
    telling,
    without_tokens,
    words_of,
)


@pytest.mark.parametrize(
    "text",
    [
        "Yes, please", "###STOP###", "Thank you so much. That's all I needed for now. ###STOP###",
        "Yes, please transfer me. Thank you.", "Great, thank you for your help! ###STOP###",
        "No, that's all for now. Thanks for your help!", "hello", "Hi there!", "<|im_end|>",
        "TERMINATE", "You're welcome! If you have any more questions, feel free to ask.",
        "Yes, I confirm.", "I apologize for the inconvenience.", "", "  \n ",
        "Ann: Thank you!", "User Interface: ..", "```python\nconst = 1\n```",
    ],
)  # fmt: skip
def test_a_courtesy_or_a_control_token_tells_nothing(text: str) -> None:
    assert telling(text) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Hi there! I need to cancel a reservation.", "I need to cancel a reservation."),
        ("Hello, can the report be sent today?", "Can the report be sent today?"),
        ("Your flight is booked. Safe travels!", "Your flight is booked."),
        ("What is 7 * 6?", "What is 7 * 6?"),
        ("Please rebook me to Lisbon", "Please rebook me to Lisbon"),
        ("the hedge is cut", "the hedge is cut"),
        ("Stop the server at once.", "Stop the server at once."),
        ("取消我的预订", "取消我的预订"),
        ("Ja bitte, storniere die Reise", "Ja bitte, storniere die Reise"),
    ],
)
def test_what_tells_something_stays_in_its_words(text: str, told: str) -> None:
    assert telling(text) == told


def test_a_speakers_name_stays_with_what_is_told() -> None:
    assert telling("Ann: Hi there! The bread is baked.") == "Ann: The bread is baked."


def test_a_long_answer_is_told_by_what_comes_before_its_lists() -> None:
    answer = "The bread is baked. Here is the recipe:\n" + "- a spoon of rye flour\n" * 20
    assert telling(answer, answers_only=True) == "The bread is baked."
    assert telling("Baked:\n- rye\n- wheat", answers_only=True) == "Baked: - rye - wheat"


def test_chinese_and_japanese_sentences_are_told_apart_by_their_marks() -> None:
    assert telling("部署修好了。还需要别的吗？", answers_only=True) == "部署修好了。"
    assert telling("終わりました！請求書も合っています。") == "終わりました！請求書も合っています。"
    assert telling("他说「好了。」就走了。") == "他说「好了。」就走了。"
    assert ended("部署修好了。") == "部署修好了。"
    assert ended("还要吗？") == "还要吗？"


def test_a_chinese_text_has_more_than_one_word_of_its_own() -> None:
    assert own_words("请把发票服务部署到新的服务器") > 5


def test_control_tokens_are_taken_out_of_a_text_and_headings_stay() -> None:
    assert without_tokens("Done it. ###STOP###") == "Done it."
    assert without_tokens("### Plan\nfirst") == "### Plan\nfirst"


@given(st.text(max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    told = telling(text)
    assert telling(told) == told or len(told) <= len(text)


def test_contractions_and_parts_of_ids_are_no_words() -> None:
    assert words_of("I'm sure I’ll see the flight's seats on 60RX9E") == ["flight", "seats"]


@given(st.text(max_size=300), st.integers(min_value=2, max_value=100))
def test_cut_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Die Rechnung ist nicht für den Kunden, und sie wurde gebucht", "rechnung kunden gebucht"),
        ("Les utilisateurs ne sont pas dans la base avec leur carte", "utilisateurs base carte"),
        ("Los usuarios no pueden pagar con esta tarjeta", "usuarios pueden pagar tarjeta"),
        ("Nous avons corrigé l'erreur d’authentification", "corrigé erreur authentification"),
        ("They die in the war", "die war"),
    ],
)
def test_what_only_puts_a_sentence_together_in_its_language_says_nothing(
    text: str, told: str
) -> None:
    assert words_of(text) == told.split()


@pytest.mark.parametrize(
    ("topic", "text", "share"),
    [
        ("Wie können wir die Rechnung für den Kunden nicht doppelt buchen?",
         "Wir können die Sicherung für den Server nicht einspielen, wie ist die Lage?", 0.0),
        ("¿Por qué los usuarios no pueden pagar con esta tarjeta?",
         "Los servidores no están para las pruebas con esta base, por qué", 0.0),
        ("die Rechnung", "Die Rechnung ist nicht bezahlt, und sie wird gemahnt", 1.0),
        ("die Rechnung", "Die Sicherung ist nicht fertig, und sie wird gebraucht", 0.0),
        ("l'erreur d'authentification", "Nous avons corrigé l'erreur d'authentification", 1.0),
        ("航班退款", "用户要求航班退款，已经处理。", 1.0),
        ("航班退款怎么办", "我们怎么办呢，今天的会议改期了。", 0.0),
        ("航空券の払い戻し", "お客様は航空券の払い戻しを希望しています", 1.0),
        ("항공권 환불", "고객이 항공권 환불을 요청했습니다", 1.0),
    ],
)  # fmt: skip
def test_a_text_covers_a_topic_by_what_the_topic_is_about_in_any_language(
    topic: str, text: str, share: float
) -> None:
    assert coverage(topic, text) == share
