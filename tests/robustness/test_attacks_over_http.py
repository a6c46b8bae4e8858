"""Attacks over HTTP that go on: others hardly notice them, and memory does not grow with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attacks import besieged
from support.enduring import SECONDS, endure, only_for_long
from support.http_sieges import ATTACKS

pytestmark = only_for_long


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_nobody_else_however_long_it_takes(name: str, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        endure(siege, name, lambda: [ATTACKS[name](siege)], SECONDS)
