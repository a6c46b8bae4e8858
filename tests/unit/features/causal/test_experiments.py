"""What an experiment's observations say."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.causal.experiments import analyzed
from mneme_server.features.causal.model import ExperimentResult, Outcomes


def result(treated: list[float], control: list[float]) -> ExperimentResult:
    flags = np.array([True] * len(treated) + [False] * len(control))
    values = np.array([*treated, *control], np.float64)
    return analyzed(Outcomes(values, flags, np.ones(len(values), np.bool_), repeated=0))


def test_a_few_successes_and_as_many_failures_are_no_certainty() -> None:
    few = result([1, 1], [0, 0])
    assert few.uplift == 1
    assert few.p_value is not None
    assert few.p_value > 0.05
    assert few.low is not None
    assert few.low < 0
    many = result([1] * 50, [0] * 50)
    assert many.p_value is not None
    assert 0 < many.p_value < 1e-6
    assert many.low is not None
    assert 0.9 < many.low < 1


@pytest.mark.parametrize("same", [0.1, 1.0, 1 / 3])
def test_three_that_went_alike_are_no_certainty_beside_however_many(same: float) -> None:
    found = result([same] * 3, [0.0, same] * 150)
    assert found.uplift == pytest.approx(same / 2)
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert found.low is not None
    assert found.low < 0


def test_what_never_differs_is_not_tested() -> None:
    assert result([1, 1, 1], [1, 1, 1]).p_value is None
