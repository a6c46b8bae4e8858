"""What Discover estimates of causes that few episodes had."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.causal.estimation import Problem


@pytest.mark.parametrize("rate", [0.9, 0.95, 0.98])
def test_a_rare_cause_without_effect_is_no_discovery_where_nearly_all_succeed(rate: float) -> None:
    chance = np.random.default_rng(5)
    p_values = []
    for _ in range(150):
        works = (chance.random((1_000, 1)) < rate).astype(np.float64)
        treated = chance.permutation(1_000) < 50
        estimates = Problem(np.ones((1_000, 1)), works).estimate(treated).estimates
        assert estimates is not None
        assert estimates[0] is not None
        p_values.append(estimates[0].p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.08
    assert np.mean(np.array(p_values) < 0.005) <= 0.02
