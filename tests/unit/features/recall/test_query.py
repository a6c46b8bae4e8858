"""What a query says besides its words."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.corpus import words
from mneme_server.engine.corpus.words import name_words
from mneme_server.engine.index.words import languages
from mneme_server.features.recall import dates, relative
from mneme_server.features.recall import query as reading
from mneme_server.features.recall.dates import NamedDate
from mneme_server.features.recall.query import as_asked, read_query
from support.backtracking import StepCounter


@pytest.mark.parametrize(
    "query", ["what failed", "Where was it?", "the build broke?", "  did it work", "何が起きた？"]
)
def test_a_question_is_told_by_its_mark_or_its_first_word(query: str) -> None:
    assert read_query(query).asks


@pytest.mark.parametrize("query", ["payment refused", "I know what you did", "whatever works", ""])
def test_a_description_is_no_question(query: str) -> None:
    assert not read_query(query).asks


@pytest.mark.parametrize(
    "query",
    [
        "Error: no such file",
        "why did the deployment fail",
        "the request timed out",
        "timeouts of the database",
        "access denied",
        "the card was rejected",
        "it couldn't connect",
        "it couldn’t connect",
        "insufficient funds",
        "KeyError exception",
        "timeout异常",
        "请求timed out了",
        "デプロイがfailedした",
        "배포가failed했다",
    ],
)
def test_a_query_about_a_failure_is_recognised(query: str) -> None:
    assert read_query(query).failure


@pytest.mark.parametrize("query", ["terror films", "the candidate is fine", "a mirror", ""])
def test_words_that_only_look_like_failures_are_none(query: str) -> None:
    assert not read_query(query).failure


def test_short_words_and_stop_words_name_nobody() -> None:
    assert read_query("What did Will and Bo say to Ann-Marie?").names == {"say", "ann", "marie"}
    assert name_words("Will Smith") == {"smith"}
    assert name_words("support_bot-7") == {"support", "bot"}


def test_names_and_dates_are_told_from_the_script_that_they_are_written_in_one_run_with() -> None:
    assert "caroline" in read_query("Caroline什么时候去的").names
    assert "caroline" in read_query("昨日Carolineは何と言った").names
    assert read_query("2023-05-07发生了什么").dates == [NamedDate(2023, 5, 7)]
    assert read_query("山田太郎 said so").names >= {"山田太郎"}


@pytest.mark.parametrize("query", ["what是timeout", "why失败了"])
def test_a_question_is_told_by_its_first_word_whatever_script_follows_it(query: str) -> None:
    assert read_query(query).asks


def test_words_are_counted_once() -> None:
    assert read_query("retry, RETRY and retry").words == 2
    assert read_query("?!").words == 0


def test_of_what_is_written_in_one_run_every_pair_counts_as_a_word() -> None:
    """Their evidence is BM25 per word of the query, and the index has these pairs for words."""
    assert read_query("部署失败").words == 3
    assert read_query("timeout异常").words == 2


@given(st.text())
def test_any_text_can_be_read(query: str) -> None:
    assert read_query(query).words >= 0


@pytest.mark.parametrize(
    "query",
    [
        "a/",
        "a\\",
        "a.",
        "a-",
        "-",
        "aB",
        "a/.",
        "./",
        "a_",
        "1",
        " ",
        "you ",
        "please ",
        "错",
        "错a",
        "错a_",
    ],
)
def test_a_query_is_read_in_time_proportional_to_its_length(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, taken = StepCounter(), [0]
    counter.watch(monkeypatch, reading, dates, relative, words, languages)
    for length in (250, 500, 1_000):
        read_query(f"{query * length} you? 1"[-length:])
        taken.append(counter.steps)
    _, more, most = (after - before for before, after in itertools.pairwise(taken))
    assert 0 < most <= 2.2 * more


@pytest.mark.parametrize(
    ("query", "share"),
    [
        ("generate_relationships", 1.0),
        ("error with generate_relationships", 2 / 3),
        ("what happened yesterday?", 0.0),
        ("", 0.0),
        ("the one and only", 0.0),
        ("在utils.py里", 2 / 4),
        ("KeyError异常", 1 / 2),
        ("端口5000", 1.0),
    ],
)
def test_a_query_says_how_much_of_it_identifiers_are(query: str, share: float) -> None:
    assert read_query(query).identified == pytest.approx(share)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("what did Ann buy", "what did Ann buy?"),
        ("what did Ann buy?", "what did Ann buy?"),
        ("何が起きた？", "何が起きた？"),
        ("the order was refused", "the order was refused"),
        ("", ""),
    ],
)
def test_the_model_reads_a_question_with_its_mark(query: str, asked: str) -> None:
    assert as_asked(query) == asked
