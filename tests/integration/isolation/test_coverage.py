"""Every RPC has a check that tenants do not see each other, over gRPC and over REST."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

from support.api import METHODS

TESTS = (
    "test_another_tenants_data_is_out_of_reach_of",
    "test_another_tenants_data_is_out_of_reach_over_rest_of",
)


def test_every_rpc_is_covered() -> None:
    """By one check, of whichever file here: write one, which `@isolates` the RPC that has none."""
    files = [run_path(str(file)) for file in sorted(Path(__file__).parent.glob("test_*.py"))]
    for test in TESTS:
        tested = [rpc for names in files if test in names for rpc in _rpcs_of(names[test])]
        assert sorted(tested) == sorted(METHODS), f"{test}: {METHODS.keys() ^ set(tested)}"


def _rpcs_of(test: Any) -> list[str]:
    """Return the RPCs that pytest calls a test with."""
    (mark,) = test.pytestmark
    rpcs: list[str] = mark.args[1]
    return rpcs
