"""A rule that is tried against the past."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mneme_server.common.clock import MINUTE_US
from mneme_server.features.alerts import trial
from mneme_server.features.alerts.model import AlertCondition, Rule
from mneme_server.features.alerts.trial import TriedAlert


def test_of_very_many_alerts_only_those_are_made_that_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0

    def counted(*said: Any) -> TriedAlert:
        nonlocal made
        made += 1
        return TriedAlert(*said)

    monkeypatch.setattr(trial, "TriedAlert", counted)
    count = 100_000
    rule = Rule("r", "slow", AlertCondition.LATENCY_EXCEEDS, threshold=500, window_minutes=1)
    times = 2 * MINUTE_US * np.arange(1, count + 1, dtype=np.int64)
    series = trial._WeightSeries(times, np.full(count, 900.0), np.ones(count))
    tried = trial._replayed(rule, series, 0, int(times[-1]), truncated=False)
    assert (tried.count, len(tried.alerts), made) == (count, 1_000, 1_000)
    latest, before = tried.alerts[:2]
    assert latest == TriedAlert(int(times[-1]), None, 900, 900)
    assert before == TriedAlert(int(times[-2]), int(times[-2]) + MINUTE_US, 900, 900)
