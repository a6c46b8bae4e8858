"""What is recalled of a small corpus, over the real index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from unittest.mock import Mock

import pytest
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.recall.model import Recalled, RecallMode, RecallOutcome
from mneme_server.features.recall.ranking import RankingWeights
from unit.features.recall.corpus import Corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path)
    yield corpus
    corpus.index.close()


def terms_of(result: Recalled) -> dict[str, float]:
    return {term.name: term.contribution for term in result.terms}


def terms(corpus: Corpus, query: str, doc_id: int) -> dict[str, float]:
    answer = corpus.recall(query, explain=True, limit=100)
    return next(terms_of(r) for r in answer.results if r.document.doc_id == doc_id)


def test_an_answer_is_found_by_the_question_before_it_when_the_query_asks(corpus: Corpus) -> None:
    _, answer = corpus.say("s", "Which colour did the shed get?", "Dark green, I think.")
    assert "answer" in terms(corpus, "which colour is the shed", answer)
    assert "answer" not in terms(corpus, "the colour of the shed", answer)


def test_a_chinese_question_before_it_makes_an_answer(corpus: Corpus) -> None:
    _, answer = corpus.say("s", "棚子 是什么颜色？", "深绿色 我想")
    assert "answer" in terms(corpus, "棚子 什么颜色？", answer)


def test_a_chinese_text_is_as_long_as_its_words(corpus: Corpus) -> None:
    short, long = corpus.say("s", "棚子", "棚子漆成了深绿色因为那是剩下的油漆")
    assert terms(corpus, "棚子", long)["length"] > terms(corpus, "棚子", short).get("length", 0)


def test_a_statement_before_it_does_not_make_an_answer(corpus: Corpus) -> None:
    _, after = corpus.say("s", "The shed got its colour.", "Dark green, I think.")
    assert "answer" not in terms(corpus, "which colour is the shed", after)


def test_what_follows_tells_what_a_text_is_about(corpus: Corpus) -> None:
    first, _ = corpus.say("s", "Guess!", "The shed is painted green now?")
    assert "next" in terms(corpus, "the shed is painted", first)


def test_a_tools_event_borrows_from_nobody_and_nobody_from_it(corpus: Corpus) -> None:
    (question,) = corpus.say("s", "Is the shed painted green?")
    (call,) = corpus.say("s", "tool_call: paint: shed green", category="tool_call")
    (thanks,) = corpus.say("s", "Thank you so much.")
    query = "is the shed green?"
    for doc_id in (question, call, thanks):
        assert not {"answer", "next"} & set(terms(corpus, query, doc_id))
    assert "alone" in terms(corpus, query, call)


def test_lessons_stand_alone_and_are_lifted_by_themselves(corpus: Corpus) -> None:
    lesson = corpus.learn("paint the shed when it is dry")
    assert "alone" in terms(corpus, "paint the shed", lesson)
    spoken = corpus.say("s", "paint the shed", "paint the shed when it is dry")
    assert "alone" not in terms(corpus, "paint the shed", spoken[1])


@pytest.mark.parametrize("category", ["tool_error", "error"])
def test_errors_gain_when_the_query_speaks_of_a_failure(corpus: Corpus, category: str) -> None:
    (said,) = corpus.say("s", "the payment of the order")
    (error,) = corpus.say("t", "the payment of the parcel", category=category)
    why, what = "why did the payment fail", "the payment of the order"
    assert terms(corpus, why, error)["failure"] == RankingWeights().failure
    assert "failure" not in terms(corpus, what, error)
    assert "failure" not in terms(corpus, why, said)


def test_a_lesson_about_errors_is_no_error(corpus: Corpus) -> None:
    lesson = corpus.learn("payments fail at night", category="error")
    assert "failure" not in terms(corpus, "payments fail", lesson)


def test_a_text_that_was_shown_gives_way_to_other_texts(corpus: Corpus) -> None:
    copies = [corpus.say(f"s{i}", "gift card balance is not enough")[0] for i in range(5)]
    (other,) = corpus.say("other", "the gift card balance is not enough for this")
    query = "gift card balance is not enough"
    ids = corpus.ids(query, weights=RankingWeights(repeated=1.0))
    assert ids[:2] == [copies[-1], other]
    assert ids[2:] == copies[-2::-1]
    assert corpus.ids(query, weights=RankingWeights(repeated=0.0)) == [*copies[::-1], other]


def test_a_lesson_and_an_event_of_one_text_are_two_memories(corpus: Corpus) -> None:
    corpus.learn("paint the shed")
    corpus.say("s", "paint the shed")
    for result in corpus.recall("paint the shed", explain=True).results:
        assert "repeated" not in terms_of(result)


def test_whoever_is_named_comes_first(corpus: Corpus) -> None:
    ann, bob = corpus.say("s", "Ann: I painted a shed", "Bob: I painted a shed")
    assert corpus.ids("what did Ann paint")[0] == ann
    assert corpus.ids("what did Bob paint")[0] == bob


def test_what_happened_on_a_named_day_is_looked_at(corpus: Corpus) -> None:
    day_us = 86_400_000_000
    names = [first + second for first in ascii_lowercase for second in ascii_lowercase]
    may_7 = 19_484 * day_us
    corpus.say("s", *[f"we met at the shed with {name * 2}" for name in names])
    (then,) = corpus.say("t", "we met at the shed with somebody", timestamp_us=may_7)
    assert then in corpus.ids("who did we meet on 7 May 2023")
    assert then not in corpus.ids("who did we meet on 7 May 2022")


def test_a_log_is_not_searched_once_for_each_of_its_dates(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.say("s", *["the shed is green"] * 3, timestamp_us=19_484 * 86_400_000_000)
    select = Mock(side_effect=corpus.index.select)
    monkeypatch.setattr(corpus.index, "select", select)
    log = "\n".join(f"2023-05-{day:02} 12:00 the shed" for day in range(1, 31) for _ in range(5))
    assert corpus.ids(log)
    assert select.call_count < 15


@pytest.mark.parametrize("mode", RecallMode)
def test_equal_memories_come_newest_first_and_always_the_same(
    corpus: Corpus, mode: RecallMode
) -> None:
    lessons = [corpus.learn("paint the shed", timestamp_us=5) for _ in range(4)]
    newest = corpus.learn("paint the shed", timestamp_us=6)
    order = [newest, *lessons[::-1]]
    for _ in range(3):
        assert corpus.ids("paint the shed", mode=mode, weights=RankingWeights(recency=0)) == order


def test_the_explained_terms_add_up_to_what_the_score_is_made_of(corpus: Corpus) -> None:
    corpus.say("s", "Ann: is the shed green?", "Bob: it failed to dry", "Ann: it failed to dry")
    corpus.say("s", "tool_error: paint: dry it first", category="tool_error")
    corpus.learn("dry the shed before you paint it")
    answer = corpus.recall("why did the shed fail to dry, Ann?", explain=True)
    basis = [sum(terms_of(result).values()) for result in answer.results]
    ratios = [r.score**2 / b for r, b in zip(answer.results, basis, strict=True)]
    assert basis == sorted(basis, reverse=True)
    assert ratios == pytest.approx([ratios[0]] * len(ratios))


def test_a_query_about_nothing_stored_scores_lower_than_a_good_match(corpus: Corpus) -> None:
    corpus.say("s", "the shed is painted green", "it dried in the sun", "the roof leaks")
    good = corpus.recall("the shed is painted").results[0].score
    bad = corpus.recall("quarterly revenue of the subsidiary in Peru").results[0].score
    assert good > 2 * bad
    none = corpus.recall("quarterly revenue in Peru", min_score=0.5)
    assert (none.results, none.outcome) == ([], RecallOutcome.NOTHING_ABOVE_MIN_SCORE)


def test_the_text_itself_scores_nearly_one(corpus: Corpus) -> None:
    corpus.learn("paint the shed green before the summer")
    corpus.learn("water the roses")
    assert corpus.recall("paint the shed green before the summer").results[0].score > 0.9


def test_the_total_counts_what_reaches_min_score(corpus: Corpus) -> None:
    corpus.say("s", "paint the shed", "paint the roof", "water the roses")
    everything = corpus.recall("paint the shed")
    least = everything.results[1].score
    answer = corpus.recall("paint the shed", min_score=least, limit=1)
    assert (len(answer.results), answer.total) == (1, 2)


def test_neighbours_beyond_a_filter_are_not_shown(corpus: Corpus) -> None:
    corpus.say("s", "the shed is green", agent_id="ann")
    corpus.say("s", "indeed", agent_id="bob")
    mine = corpus.recall("the shed is green", filter=DocumentFilter(agent_id="ann"))
    assert [result.document.agent_id for result in mine.results] == ["ann"]


def test_an_empty_answer_says_why(corpus: Corpus) -> None:
    assert corpus.recall("shed").outcome == RecallOutcome.NOTHING_STORED
    corpus.learn("paint the shed")
    only_events = DocumentFilter(kinds=frozenset({EVENT}))
    assert corpus.recall("shed", filter=only_events).outcome == RecallOutcome.NOTHING_STORED
    somebody = DocumentFilter(agent_id="nobody")
    assert corpus.recall("shed", filter=somebody).outcome == RecallOutcome.NOTHING_MATCHES_FILTERS
    nothing = corpus.recall("shed", mode=RecallMode.LEXICAL, min_score=0.99)
    assert nothing.outcome == RecallOutcome.NOTHING_ABOVE_MIN_SCORE


def test_words_alone_give_no_similarity_and_meaning_alone_no_terms(corpus: Corpus) -> None:
    corpus.learn("paint the shed")
    (by_words,) = corpus.recall("paint", mode=RecallMode.LEXICAL).results
    (by_meaning,) = corpus.recall("paint", mode=RecallMode.DENSE, explain=True).results
    assert by_words.similarity is None
    assert by_meaning.similarity == pytest.approx(by_meaning.score)
    assert by_meaning.terms == []


def test_switching_the_neighbours_off_leaves_nothing_borrowed(corpus: Corpus) -> None:
    corpus.say("s", "Is the shed green?", "Yes, the shed is.")
    weights = replace(RankingWeights(), answer=0.0, next=0.0, alone=0.0)
    for result in corpus.recall("is the shed green?", weights=weights, explain=True).results:
        assert not {"answer", "next", "alone"} & set(terms_of(result))


def test_i_asks_for_what_the_user_said_and_you_for_what_the_assistant_did(corpus: Corpus) -> None:
    mine, yours = (
        corpus.say("s", "paint the shed green", role=role)[0] for role in ("user", "assistant")
    )
    assert "author" in terms(corpus, "what did I say about the shed", mine)
    assert "author" not in terms(corpus, "what did I say about the shed", yours)
    assert "author" in terms(corpus, "what did you tell me about my shed?", yours)
    assert "author" not in terms(corpus, "what did you tell me about my shed?", mine)
    for doc_id in (mine, yours):
        assert "author" not in terms(corpus, "can you find the shed", doc_id)


def test_a_label_says_who_speaks_where_there_is_no_role(corpus: Corpus) -> None:
    mine, yours = corpus.say("s", "User: paint the shed", "Assistant: paint the shed")
    assert "author" in terms(corpus, "what did I paint", mine)
    assert "author" in terms(corpus, "what did you paint", yours)


def test_in_a_long_session_the_passage_tells_what_a_text_is_about(corpus: Corpus) -> None:
    about = [f"the shed needs paint, number {i}" for i in range(3)]
    talk = ["something else altogether " * 50] * 30
    corpus.say("s", *talk)
    corpus.say("s", about[0], about[1])
    (inside,) = corpus.say("s", "I will think of it.")
    corpus.say("s", about[2], *talk)
    assert terms(corpus, "paint for the shed", inside)["passage"] > 0


def test_of_many_that_wait_for_their_embedding_the_one_with_the_rare_word_comes_first(
    corpus: Corpus,
) -> None:
    for n in range(40):
        corpus.say(f"old{n}", "the report on the orders was sent to the customer")
    for n in range(400):
        corpus.say(f"s{n // 10}", f"the report on order {n} is ready", embedded=False)
    (rare,) = corpus.say("s7", "the report names a zeppelin", embedded=False)
    assert corpus.ids("was the report on the zeppelin sent?")[0] == rare
    assert corpus.recall("the report on the zeppelin").results[0].similarity is None
