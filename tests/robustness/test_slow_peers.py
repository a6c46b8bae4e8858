"""Peers that send no end of a message, or read no answer, take nothing from other callers. Each for
long here; tests/e2e/test_slow_peers.py has the same for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attacks import besieged
from support.enduring import SECONDS, endure, only_for_long
from support.slow_attacks import ATTACKS

pytestmark = only_for_long


@pytest.mark.parametrize("name", ATTACKS)
def test_slow_peers(name: str, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        endure(siege, name, lambda: ATTACKS[name](siege.server), 2 * SECONDS)
