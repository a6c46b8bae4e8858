"""The terms of the score, one by one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.recall.ranking import (
    HALF_LIFE_DAYS,
    LONG_WORDS,
    MAX_WORDS,
    NO_SESSION,
    PASSAGE,
    SESSION_WORDS,
    TERMS,
    UNRELATED_COSINE,
    Candidates,
    Floats,
    RankingWeights,
    evidence,
    measure,
    pages_among,
    put_back,
    ranked,
    repeats,
    scores,
    total,
)

NAN = float("nan")
_DTYPES = {
    **dict.fromkeys(("session", "position"), np.int64),
    **dict.fromkeys(("alone", "spoken", "author_named", "failed"), np.bool_),
}


def candidates(count: int, **columns: Any) -> Candidates:
    """Candidates of which nothing is known but what is given."""
    values: dict[str, Any] = {
        "lexical": 0.0,
        "cosine": 0.0,
        "cosine_question": NAN,
        "cosine_next": NAN,
        "alone": False,
        "spoken": False,
        "session": np.arange(count),
        "position": 0,
        "session_words": 0.0,
        "words": 1.0,
        "author_named": False,
        "date_match": 0.0,
        "failed": False,
        "importance": 0.0,
        "age_days": 0.0,
        **columns,
    }
    attainable = values.pop("attainable", 0.0)
    return Candidates(
        attainable=attainable,
        **{
            name: np.broadcast_to(np.asarray(value, _DTYPES.get(name, np.float64)), count).copy()
            for name, value in values.items()
        },
    )


def term(name: str, count: int, **columns: Any) -> Floats:
    values: Floats = measure(candidates(count, **columns))[TERMS.index(name)]
    return values


def test_words_count_relative_to_the_candidate_that_has_them_best() -> None:
    assert term("lexical", 3, lexical=[20.0, 5.0, 0.0]) == pytest.approx([1.0, 0.25, 0.0])


def test_without_a_match_of_words_the_lexical_term_is_zero() -> None:
    assert term("lexical", 2).tolist() == [0.0, 0.0]


def test_a_few_of_a_questions_words_tell_little_of_a_fact_and_all_of_them_much() -> None:
    of_facts = {"session": NO_SESSION, "attainable": 20.0, "lexical": [8.0, 2.0, 0.0, 20.0]}
    assert term("lexical", 4, **of_facts) == pytest.approx([1.0, 1 / 16, 0.0, 1.0])
    assert term("session_lexical", 4, **of_facts) == pytest.approx([1.0, 1 / 16, 0.0, 1.0])


def test_words_of_a_fact_do_not_count_where_nothing_could_be_attained() -> None:
    assert term("lexical", 1, session=NO_SESSION, lexical=[3.0]).tolist() == [0.0]


def test_a_fact_is_never_too_short() -> None:
    said = term("length", 1, words=[64.0])
    assert term("length", 2, session=NO_SESSION, words=[3.0, 500.0]).tolist() == [*said, *said]


def test_meaning_counts_as_the_cosine_and_not_at_all_before_it_is_known() -> None:
    assert term("dense", 3, cosine=[0.7, -0.1, NAN]) == pytest.approx([0.7, -0.1, 0.0])


@pytest.mark.parametrize(
    ("name", "column"), [("answer", "cosine_question"), ("next", "cosine_next")]
)
def test_a_neighbour_lifts_only_above_what_unrelated_texts_reach(name: str, column: str) -> None:
    lifted = term(name, 4, **{column: [0.9, UNRELATED_COSINE, -0.3, NAN]})
    assert lifted == pytest.approx([0.9 - UNRELATED_COSINE, 0.0, 0.0, 0.0])


def test_what_stands_alone_is_lifted_by_itself_and_nothing_else_is() -> None:
    lifted = term("alone", 3, cosine=[0.7, 0.7, 0.1], alone=[True, False, True])
    assert lifted == pytest.approx([0.7 - UNRELATED_COSINE, 0.0, 0.0])


def test_a_session_shares_its_best_cosine_and_its_best_words() -> None:
    columns = {
        "session": [4, 9, 4, NO_SESSION, NO_SESSION],
        "cosine": [0.1, 0.5, 0.6, 0.9, 0.2],
        "lexical": [10.0, 2.0, 0.0, 5.0, 0.0],
        "attainable": 25.0,
    }
    assert term("session_dense", 5, **columns) == pytest.approx([0.6, 0.5, 0.6, 0.9, 0.2])
    assert term("session_lexical", 5, **columns) == pytest.approx([1.0, 0.2, 1.0, 0.25, 0.0])


def test_a_session_below_zero_keeps_its_best_cosine() -> None:
    assert term("session_dense", 2, session=[1, 1], cosine=[-0.4, -0.1]) == pytest.approx(-0.1)


def test_whoever_is_named_by_the_query_gains() -> None:
    assert term("author", 2, author_named=[True, False]).tolist() == [1.0, 0.0]


def test_length_grows_with_the_logarithm_stops_and_falls_for_long_texts() -> None:
    words = [0.0, 1.0, MAX_WORDS, LONG_WORDS, 2 * LONG_WORDS]
    most = np.log(MAX_WORDS)
    assert term("length", 5, words=words) == pytest.approx(
        [0.0, 0.0, most, most, most - np.log(2.0)]
    )


@pytest.mark.parametrize(
    ("name", "column"), [("answer", "cosine_question"), ("next", "cosine_next")]
)
def test_a_long_text_borrows_less_than_a_short_one(name: str, column: str) -> None:
    short, four_times = term(name, 2, words=[MAX_WORDS, 4 * MAX_WORDS], **{column: 0.8})
    assert short == pytest.approx(4 * four_times) == pytest.approx(0.8 - UNRELATED_COSINE)


def test_the_longer_a_session_the_less_it_tells_and_the_more_the_passage() -> None:
    columns = {"session": 1, "cosine": 0.5, "lexical": 2.0, "spoken": True, "position": [1, 2, 3]}
    words = {"session_words": [SESSION_WORDS, 4 * SESSION_WORDS, 1e9]}
    for name in ("session_dense", "session_lexical"):
        assert term(name, 3, **columns, **words) == pytest.approx(
            [term(name, 3, **columns)[0] * share for share in (1.0, 0.25, 0.0)], abs=1e-4
        )
    mean = 2 / (2 * PASSAGE)
    assert term("passage", 3, **columns, **words) == pytest.approx(
        [0.0, 0.75 * mean, mean], abs=1e-4
    )


def test_a_passage_is_what_is_said_around_in_the_same_session() -> None:
    passage = term(
        "passage", 6,
        lexical=[4.0, 2.0, 1.0, 4.0, 4.0, 4.0],
        position=[10, 11, 10 + PASSAGE, 11 + PASSAGE, 10, 12],
        session=[1, 1, 1, 1, 2, 1],
        spoken=[True, True, True, True, True, False],
        session_words=1e9,
    )  # fmt: skip
    around = [0.5 + 0.25, 1.0 + 0.25 + 1.0, 1.0 + 0.5 + 1.0, 0.5 + 0.25, 0.0, 0.0]
    assert passage == pytest.approx([total / (2 * PASSAGE) for total in around], abs=1e-4)


def test_what_is_not_embedded_yet_is_taken_to_mean_what_its_words_say() -> None:
    dense = term("dense", 4, lexical=[8.0, 4.0, 8.0, 0.0], cosine=[0.6, 0.3, NAN, NAN])
    assert dense == pytest.approx([0.6, 0.3, 0.6, 0.0])


def test_without_any_cosine_nothing_is_estimated() -> None:
    assert term("dense", 2, lexical=[8.0, 4.0], cosine=NAN).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("words", "pages"), [(1, 0.0), (32, 0.0), (40, 0.06), (320, 0.88)])
def test_candidates_are_the_more_of_pages_the_longer_they_are(words: int, pages: float) -> None:
    assert pages_among(candidates(3, words=float(words))) == pytest.approx(pages, abs=0.005)


def test_a_few_long_turns_make_no_pages() -> None:
    words = np.array([10.0] * 9 + [1_000.0])
    assert pages_among(candidates(10, words=words)) == 0.0
    assert pages_among(candidates(0)) == 0.0


def test_among_pages_meaning_counts_more() -> None:
    given, fitted = RankingWeights(), RankingWeights().fitting(pages=1.0, identified=0.0)
    assert fitted.dense == 2.5 * given.dense
    assert replace(fitted, dense=given.dense) == given


def test_the_more_of_a_query_identifiers_are_the_more_its_words_count() -> None:
    given, fitted = RankingWeights(), RankingWeights().fitting(pages=1.0, identified=1.0)
    assert fitted.lexical == 2.0 * given.lexical
    assert fitted.session_lexical == 2.0 * given.session_lexical
    assert replace(fitted, lexical=given.lexical, session_lexical=given.session_lexical) == given
    assert RankingWeights().fitting(0.5, 0.5).lexical == 1.5 * given.lexical


def test_weights_that_are_off_stay_off() -> None:
    fitted = replace(RankingWeights(), lexical=0.0, dense=0.0).fitting(0.7, 0.3)
    assert (fitted.lexical, fitted.dense) == (0.0, 0.0)


def test_date_failure_and_importance_are_taken_as_they_are() -> None:
    assert term("date", 2, date_match=[0.5, 0.0]).tolist() == [0.5, 0.0]
    assert term("failure", 2, failed=[True, False]).tolist() == [1.0, 0.0]
    assert term("importance", 2, importance=[0.5, -0.25]).tolist() == [0.5, -0.25]


def test_recency_halves_with_each_half_life() -> None:
    ages = [0.0, HALF_LIFE_DAYS, 3 * HALF_LIFE_DAYS]
    assert term("recency", 3, age_days=ages) == pytest.approx([1.0, 0.5, 0.125])


NEUTRAL = set(TERMS) - {"lexical", "dense", "session_dense", "session_lexical", "recency"}


@pytest.mark.parametrize("name", sorted(NEUTRAL))
def test_a_term_is_zero_where_it_does_not_apply(name: str) -> None:
    assert term(name, 2, lexical=[3.0, 1.0], cosine=[0.8, 0.4]).tolist() == [0.0, 0.0]


def test_of_what_has_no_session_the_session_terms_keep_the_order() -> None:
    columns = {"lexical": [8.0, 4.0], "cosine": [0.8, 0.4], "session": NO_SESSION}
    assert term("session_dense", 2, **columns).tolist() == [0.8, 0.4]
    assert term("session_lexical", 2, attainable=20.0, **columns) == pytest.approx([1.0, 0.25])


_FINITE = st.floats(-1, 1, width=32)
_ROWS = st.integers(1, 12)


@st.composite
def some_candidates(draw: st.DrawFn) -> Candidates:
    count = draw(_ROWS)
    listed = {
        name: draw(st.lists(_FINITE, min_size=count, max_size=count))
        for name in ("cosine", "cosine_question", "cosine_next", "importance", "date_match")
    }
    sessions = draw(st.lists(st.integers(-1, 3), min_size=count, max_size=count))
    lexical = draw(st.lists(st.floats(0, 50), min_size=count, max_size=count))
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return candidates(count, **listed, session=sessions, lexical=lexical, alone=flags, failed=flags)


@given(st.sampled_from(TERMS), some_candidates())
def test_a_weight_of_zero_switches_its_term_off(name: str, some: Candidates) -> None:
    terms = measure(some)
    without = replace(RankingWeights(), **{name: 0.0})
    changed = terms.copy()
    changed[TERMS.index(name)] = 123.0
    assert total(terms, without).tolist() == total(changed, without).tolist()


@given(some_candidates())
def test_the_sum_is_that_of_the_weighted_terms(some: Candidates) -> None:
    terms = measure(some)
    by_hand = sum(getattr(RankingWeights(), name) * terms[i] for i, name in enumerate(TERMS))
    assert total(terms, RankingWeights()) == pytest.approx(by_hand)


@given(some_candidates())
def test_without_any_weight_everything_is_equal(some: Candidates) -> None:
    nothing = RankingWeights(**{field.name: 0.0 for field in fields(RankingWeights)})
    totals = total(measure(some), nothing)
    assert not totals.any()
    assert not scores(totals, highest_of(nothing), 1.0).any()


def highest_of(weights: RankingWeights, **said: bool) -> float:
    flags = {"asks": False, "dated": False, "named": False, "failure": False, **said}
    return weights.highest(**flags)


def test_equal_sums_are_ordered_by_time_and_then_by_what_was_written_last() -> None:
    order = ranked(np.array([1.0, 2.0, 1.0, 1.0]), np.array([5, 1, 9, 5]), np.array([1, 2, 3, 4]))
    assert order.tolist() == [1, 2, 3, 0]


def test_sums_that_differ_by_rounding_alone_are_equal() -> None:
    order = ranked(np.array([0.3, 0.1 + 0.2]), np.array([9, 5]), np.array([1, 2]))
    assert order.tolist() == [0, 1]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=20), st.randoms())
def test_the_order_does_not_depend_on_the_order_of_the_candidates(
    totals: list[float], random: Any
) -> None:
    doc_ids = np.arange(len(totals)) + 1
    times = doc_ids // 2
    shuffled = random.sample(range(len(totals)), len(totals))
    sums = np.array(totals)
    expected = doc_ids[ranked(sums, times, doc_ids)]
    mixed = doc_ids[shuffled]
    found = mixed[ranked(sums[shuffled], times[shuffled], mixed)]
    assert found.tolist() == expected.tolist()


def test_a_text_is_repeated_wherever_it_comes_earlier() -> None:
    order, texts = np.array([3, 0, 2, 1]), np.array([7, 8, 7, 7])
    assert sorted(repeats(order, texts).tolist()) == [0, 2]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_of_each_text_all_but_the_best_are_repeated(texts: list[int]) -> None:
    order = np.arange(len(texts))[::-1].copy()
    repeated = set(repeats(order, np.array(texts, np.int64)).tolist())
    seen: set[int] = set()
    for place in order.tolist():
        assert (place in repeated) == (texts[place] in seen)
        seen.add(texts[place])


def test_a_repeated_text_loses_the_weight_of_that_term() -> None:
    terms = measure(candidates(3, cosine=[0.9, 0.8, 0.7]))
    weights = replace(RankingWeights(), repeated=0.3)
    totals = total(terms, weights)
    before = totals.copy()
    put_back(np.array([1]), terms, totals, weights)
    assert (totals - before) == pytest.approx([0.0, -0.3, 0.0])
    assert totals == pytest.approx(total(terms, weights))


def test_evidence_is_the_best_cosine_or_the_best_words_whichever_is_more() -> None:
    assert evidence(candidates(2, cosine=[0.6, NAN]), 3) == pytest.approx(0.6)
    # 27 over three words and a weight of three for both fields: three a word, one half.
    assert evidence(candidates(2, cosine=0.1, lexical=[27.0, 9.0]), 3) == pytest.approx(0.5)
    assert evidence(candidates(1, cosine=NAN), 0) == 0.0


def test_a_word_that_is_one_of_many_is_less_evidence() -> None:
    matched = candidates(1, lexical=[12.0])
    assert evidence(matched, 1) > evidence(matched, 4) > evidence(matched, 12)


def test_a_score_is_one_for_a_perfect_memory_and_never_above() -> None:
    highest = highest_of(RankingWeights())
    assert scores(np.array([highest, 2 * highest, 0.0, -1.0]), highest, 1.0).tolist() == [
        1,
        1,
        0,
        0,
    ]


@given(some_candidates(), st.floats(0, 1))
def test_scores_are_in_the_order_of_the_sums_and_between_zero_and_one(
    some: Candidates, how_well: float
) -> None:
    totals = total(measure(some), RankingWeights())
    found = scores(totals, highest_of(RankingWeights()), how_well)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(totals)]) >= 0).all()


@pytest.mark.parametrize("said", ["asks", "dated", "named", "failure"])
def test_the_highest_sum_grows_with_what_the_query_says(said: str) -> None:
    assert highest_of(RankingWeights(), **{said: True}) > highest_of(RankingWeights())
