"""Peers that send no end of a message, or read no answer, take nothing from other callers. Each for
long here; tests/e2e/test_slow_peers.py has the same for some seconds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.attacks import MOST_SLOWER, besieged
from support.slow_attacks import ATTACKS, Prepare

SECONDS = 2 * float(os.environ.get("MNEME_TEST_ATTACK_SECONDS") or 0)
# Others' times tell something only where nothing else runs. What else an attack must not do is held
# by its form of some seconds, in tests/e2e.
pytestmark = pytest.mark.skipif(not SECONDS, reason="only make robustness attacks for long")


@pytest.mark.parametrize("prepare", ATTACKS.values(), ids=ATTACKS)
def test_slow_peers(prepare: Prepare, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        calm = siege.calm(10)
        outcome = siege.under(prepare(siege.server), SECONDS)
    print(f"calm: {calm}\nattacked: {outcome}")
    outcome.check()
    assert outcome.p95_s <= MOST_SLOWER * calm.p95_s
