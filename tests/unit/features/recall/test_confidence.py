"""Confidence grows with what it is made of, under each model's scale of cosines."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.engine.corpus.ports import NO_HITS, WordEvidence
from mneme_server.features.recall.confidence import (
    BY_WORDS,
    E5,
    FACTS,
    FITTED,
    USUAL,
    Fit,
    confidence_of,
    scale_of,
)
from mneme_server.features.recall.query import identifiers_in


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("what happened with 4WQ150?", ["4WQ150"]),
        ("mia_li_3668", ["mia_li_3668"]),
        ("why does src/app/main.py fail", ["src/app/main.py"]),
        ("who writes /etc/hosts", ["/etc/hosts"]),
        ("ECONNREFUSED again", ["ECONNREFUSED"]),
        ("we got exit code 137", ["exit code 137"]),
        ("HTTP 503", ["HTTP 503"]),
        ("ModuleNotFoundError in the tests", ["ModuleNotFoundError"]),
        ("call os.path.join", ["os.path.join"]),
        ("getUserById is slow", ["getUserById"]),
        ("edit config.yaml", ["config.yaml"]),
        ("ORA-12345", ["ORA-12345"]),
        ("v1.2.3", ["v1.2.3"]),
        ("4412", ["4412"]),
        ("pedido 8842", ["pedido 8842"]),
        ("in 2021", []),
        ("2023-05-07", []),
        ("KeyError, and again KeyError", ["KeyError"]),
        ("When did Caroline paint on 7 May 2023 at 10am?", []),
        ("What are the plans for the 2nd of July, e.g. a trip and/or a party?", []),
        ("JavaScript or GitHub", []),
        ("KeyError异常为什么", ["KeyError"]),
        ("在utils.py里", ["utils.py"]),
        ("为什么get_user失败", ["get_user"]),
        ("注文4WQ150はどこですか", ["4WQ150"]),
        ("서버에서ECONNREFUSED가", ["ECONNREFUSED"]),
        ("看/etc/hosts文件", ["/etc/hosts"]),
        ("端口5000", ["端口 5000"]),
        ("为什么2024年失败了", []),
        ("How much was the $1500 loan in 1999?", []),
    ],
)
def test_identifiers_are_names_paths_and_codes(query: str, found: list[str]) -> None:
    assert identifiers_in(query) == found


@pytest.mark.parametrize("fit", [*FITTED.values(), FACTS, BY_WORDS])
def test_confidence_grows_with_all_that_it_is_made_of(fit: Fit) -> None:
    little = WordEvidence(True, 10.0, 0.3, 0.0)
    assert 0.0 < fit.confidence(0.2, 0.1, little) <= fit.confidence(0.2, 0.5, little) < 1.0
    assert fit.confidence(0.2, 0.1, little) <= fit.confidence(0.7, 0.1, little)
    assert fit.confidence(0.2, 0.1, little) < fit.confidence(0.7, 0.5, little)
    assert (fit.confidence(0.2, 0.1, little) < fit.confidence(0.7, 0.1, little)) == (fit.cosine > 0)
    assert (fit.confidence(0.2, 0.1, little) < fit.confidence(0.2, 0.5, little)) == (fit.best > 0)
    more = fit.confidence(0.2, 0.1, little._replace(occurring=0.9))
    assert (fit.confidence(0.2, 0.1, little) < more) == (fit.occurring > 0)
    assert fit.confidence(0.2, 0.1, little) < fit.confidence(
        0.2, 0.1, little._replace(identified=1.0)
    )


@pytest.mark.parametrize("fit", [*FITTED.values(), FACTS, BY_WORDS])
def test_a_number_that_nothing_has_counts_against_but_what_is_like_it_is_still_recalled(
    fit: Fit,
) -> None:
    alike = WordEvidence(True, 10.0, 0.4, 0.0)
    sure, unsure = (
        fit.confidence(0.95, 0.5, alike),
        fit.confidence(0.95, 0.5, alike._replace(missing=0.6)),
    )
    assert sure > unsure >= fit.recalled
    foreign = fit.confidence(0.1, 0.0, WordEvidence(True, 10.0, 0.0, 0.0))
    assert (
        fit.confidence(0.1, 0.0, WordEvidence(True, 10.0, 0.0, 0.0, 0.6)) <= foreign < fit.recalled
    )


def test_the_default_models_cosines_stay_bit_for_bit() -> None:
    cosines = np.array([-0.3, 0.1, 0.777, np.nan])
    assert scale_of("all-MiniLM-L6-v2-int8").usual(cosines) is cosines
    assert scale_of("a model that nobody measured") == USUAL


def test_cosines_of_another_model_say_what_the_default_models_would() -> None:
    scale = scale_of(E5)
    unrelated, answer, nothing = scale.usual(np.array([0.78, 0.862, np.nan]))
    assert unrelated == pytest.approx(0.24, abs=0.02)
    assert answer == pytest.approx(0.6, abs=0.02)
    assert np.isnan(nothing)
    assert scale.usual(np.array([1.0, -1.0])).tolist() == [1.0, -1.0]


def test_a_threshold_is_brought_back_to_the_models_own_cosines() -> None:
    own = scale_of(E5).of_usual(0.35)
    assert scale_of(E5).usual(np.array([own])) == pytest.approx(0.35)
    assert USUAL.of_usual(0.35) == 0.35


SOME = WordEvidence(telling=True, attainable=10.0, occurring=0.0, identified=0.0)


def sure_of(
    similarity: list[float], facts: list[bool], model_id: str = "all-MiniLM-L6-v2"
) -> float:
    found = confidence_of(
        lambda: SOME,
        lambda: NO_HITS,
        model_id,
        rows=np.arange(len(facts)),
        similarity=np.array(similarity),
        facts=np.array(facts),
        by_words=False,
    )
    assert found is not None
    return found


def test_a_fact_is_told_by_its_cosine_and_what_is_said_by_its_words_too() -> None:
    assert sure_of([0.45], [True]) > 0.8
    assert sure_of([0.45], [False]) < 0.2
    assert sure_of([0.15], [True]) < 0.2


def test_of_facts_and_what_is_said_the_surer_one_counts() -> None:
    assert sure_of([0.45, 0.8], [True, False]) == sure_of([0.8], [False])
    assert sure_of([0.45, 0.3], [True, False]) == sure_of([0.45], [True])


def test_a_fact_is_told_on_the_default_models_scale_of_cosines() -> None:
    there = scale_of(E5).of_usual(0.45)
    assert sure_of([there], [True], E5) == pytest.approx(sure_of([0.45], [True]))
