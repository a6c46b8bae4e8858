"""Pauses that double, for as long as something fails."""

from __future__ import annotations

import pytest
from mneme_server.common.clock import doubled


@pytest.mark.parametrize(
    ("times", "pause_s"), [(0, 1.0), (1, 2.0), (3, 8.0), (10, 600.0), (5_000, 600.0)]
)
def test_a_pause_doubles_up_to_the_longest_however_often_it_failed(
    times: int, pause_s: float
) -> None:
    assert doubled(1.0, times, 600.0) == pause_s
