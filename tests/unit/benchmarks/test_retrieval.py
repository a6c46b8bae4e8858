import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.retrieval import (
    METRICS,
    Judged,
    any_found,
    distinct,
    fraction_found,
    judge,
    means,
    means_by,
)

ids = st.sampled_from("abcdefghijklmnop")


@given(st.sets(ids, min_size=1), st.lists(ids, unique=True), st.integers(0, 20))
def test_looking_further_down_never_finds_less(
    evidence: set[str], ranked: list[str], cut: int
) -> None:
    less = fraction_found(evidence, ranked, cut)
    assert 0 <= less <= fraction_found(evidence, ranked, cut + 1) <= 1
    assert any_found(evidence, ranked, cut) >= less


def test_the_fraction_counts_each_piece_of_evidence_once() -> None:
    assert fraction_found(["a", "b", "b"], ["b", "x", "b"], 3) == 0.5


def test_what_comes_after_the_cut_does_not_count() -> None:
    assert fraction_found(["a"], ["x", "a"], 1) == 0


def test_a_question_without_evidence_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        fraction_found([], ["a"], 5)


def test_repeats_count_once_and_keep_their_order() -> None:
    assert distinct("abacb") == ["a", "b", "c"]


def test_sessions_are_judged_by_the_first_distinct_ones() -> None:
    session_of = {f"t{n}": f"s{n}" for n in range(8)}
    ranked = ["s0", "s0", "s1", "s2", "s3", "s3", "s4", "s5"]
    metrics = judge({"t4", "t5"}, session_of, ["t4", "t0"], ranked)
    assert metrics["session recall@5"] == 0.5
    assert metrics["session recall@10"] == 1
    assert metrics["recall@5"] == 0.5
    assert metrics["any@5"] == 1
    assert set(metrics) == set(METRICS)


def _judged(conversation: str, category: str, value: float) -> Judged:
    return Judged(conversation, category, dict.fromkeys(METRICS, value))


def test_means_weigh_questions_alike() -> None:
    judged = [_judged("a", "1", 1), _judged("a", "2", 0), _judged("b", "1", 0.5)]
    assert means(judged)["recall@10"] == 0.5
    by_category = means_by(judged, lambda item: item.category)
    assert by_category["1"]["recall@10"] == 0.75
    assert by_category["1"]["questions"] == 2


def test_no_questions_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no question"):
        means([])
