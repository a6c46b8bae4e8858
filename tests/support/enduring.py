"""Attacks that go on for long, where nothing else runs: `make robustness` says for how long."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from support.attacks import MOST_SLOWER, Attack, Siege

SECONDS = float(os.environ.get("MNEME_TEST_ATTACK_SECONDS") or 0)
_CALM_S = 10.0

# Others' times tell something only where nothing else runs. What else an attack must not do is held
# by its form of some seconds, in tests/e2e.
only_for_long = pytest.mark.skipif(not SECONDS, reason="only make robustness attacks for long")


def endure(
    siege: Siege, name: str, attacks: Callable[[], Sequence[Attack]], seconds: float
) -> None:
    """Attack for so long, and assert that others hardly noticed; print what they did notice."""
    calm = siege.calm(_CALM_S)
    attacked = siege.under(attacks(), seconds)
    print(f"\n{name}: calm: {calm}\n{name}: {attacked}")
    attacked.check()
    assert attacked.p95_s <= MOST_SLOWER * calm.p95_s
