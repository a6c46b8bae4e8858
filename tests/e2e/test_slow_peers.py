"""Peers that send no end of a message, or read no answer, take nothing from other callers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attacks import besieged
from support.slow_attacks import ATTACKS, Prepare

SECONDS = 20.0


@pytest.mark.parametrize("prepare", ATTACKS.values(), ids=ATTACKS)
def test_slow_peers(prepare: Prepare, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        outcome = siege.under(prepare(siege.server), SECONDS)
    print(outcome)
    outcome.check()
