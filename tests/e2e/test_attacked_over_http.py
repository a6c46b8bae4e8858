"""Whoever attacks a server over HTTP is borne: others' calls are answered, its memory stays
bounded, and nothing is lost. `make robustness` attacks for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attacks import besieged
from support.http_sieges import ATTACKS

SECONDS = 20.0


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_nobody_else(name: str, tmp_path: Path) -> None:
    with besieged(tmp_path / "data") as siege:
        siege.under([ATTACKS[name](siege)], SECONDS).check()
