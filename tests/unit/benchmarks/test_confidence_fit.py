"""Fitting the weights of confidence."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.engine.corpus.ports import WordEvidence

from benchmarks.confidence import OTHER, OWN, SAME
from benchmarks.confidence_fit import IDENTIFIED, Seen, fitted

CHANCE = np.random.default_rng(1)


def seen(of: str, where: str, cosine: float, count: int) -> list[Seen]:
    return [
        Seen(of, where, float(near), 0.3, WordEvidence(True, 10.0, 0.5, 0.0))
        for near in CHANCE.normal(cosine, 0.02, count)
    ]


def test_what_is_answered_gets_a_high_confidence_and_what_is_foreign_a_low_one() -> None:
    fit = fitted([*seen("a", OWN, 0.86, 200), *seen("a", OTHER, 0.79, 50)], OWN, OTHER)
    assert fit.identified == IDENTIFIED
    [answered], [foreign] = seen("a", OWN, 0.86, 1), seen("a", OTHER, 0.79, 1)
    assert answered.sure(fit) > 0.9 > 0.1 > foreign.sure(fit)
    assert Seen("a", OWN, 0.9, 0.0, WordEvidence(False, 0.0, 0.0, 0.0)).sure(fit) == 0.0


def test_each_set_counts_alike_however_many_questions_it_has() -> None:
    small = [*seen("small", OWN, 0.6, 50), *seen("small", OTHER, 0.57, 50)]
    large = [*seen("large", OWN, 0.66, 50), *seen("large", OTHER, 0.63, 50)]
    once, many = fitted([*small, *large], OWN, OTHER), fitted([*small, *large * 50], OWN, OTHER)
    for cosine in (0.58, 0.61, 0.64):
        [asked] = seen("any", OWN, cosine, 1)
        assert asked.sure(many) == pytest.approx(asked.sure(once), abs=0.01)


def test_questions_of_other_stores_of_the_same_kind_are_not_fitted_to() -> None:
    judged = [*seen("a", OWN, 0.86, 50), *seen("a", OTHER, 0.79, 50)]
    assert fitted([*judged, *seen("a", SAME, 0.95, 50)], OWN, OTHER) == fitted(judged, OWN, OTHER)
