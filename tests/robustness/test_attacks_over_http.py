"""Attacks over HTTP that go on: others hardly notice them, and memory does not grow with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.attacks import MOST_SLOWER, besieged
from support.http_sieges import ATTACKS

SECONDS = float(os.environ.get("MNEME_TEST_ATTACK_SECONDS") or 0)
# Others' times tell something only where nothing else runs. What else an attack must not do is held
# by its form of some seconds, in tests/e2e.
pytestmark = pytest.mark.skipif(not SECONDS, reason="only make robustness attacks for long")
CALM_S = 10.0


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_nobody_else_however_long_it_takes(name: str, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        attack = ATTACKS[name](siege)
        calm = siege.calm(CALM_S)
        attacked = siege.under([attack], SECONDS)
        print(f"\n{name}: calm: {calm}\n{name}: {attacked}")
        attacked.check()
        assert attacked.p95_s <= MOST_SLOWER * calm.p95_s
