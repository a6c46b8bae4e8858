"""Misspelt words of a query."""

from __future__ import annotations

import pytest
from mneme_server.features.recall.spelling import spelled, suspects


def nowhere(word: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("when is my hoilday", "when is my holiday"),
        ("wehn is the party", "when is the party"),
        ("the torunament", "the tournament"),
        ("he was agressive", "he was aggressive"),
        ("which batery fits?", "which battery fits?"),
        ("how much mony is it", "how much money is it"),
    ],
)
def test_a_slip_of_the_keyboard_is_read_as_it_is_meant(query: str, meant: str) -> None:
    assert spelled(query, nowhere) == meant


@pytest.mark.parametrize(
    "query",
    [
        "which competitor tempts her",  # Another form of an English word.
        "new worktops and cupboards",  # Made of two.
        "the login of the repo",  # What programmers write.
        "where is Halina Brek",  # A name.
        "what does get_usr in src/maian.py do",  # Code.
        "see htps://exmaple.com",
        "Was liegt noch im Gefrierfach?",
        "qui nous fournit le fromage",
        "xkjd wpqz vbnm",  # Like nothing.
        "why do cats purr",
        "",
    ],
)
def test_what_is_no_slip_stays_as_it_is(query: str) -> None:
    assert spelled(query, nowhere) == query


def test_what_some_text_has_is_no_mistake() -> None:
    assert spelled("travle and hoilday", {"travle"}.__contains__) == "travle and holiday"


def test_most_queries_have_nothing_to_look_up() -> None:
    assert not suspects("what did we decide about the payment gateway")
