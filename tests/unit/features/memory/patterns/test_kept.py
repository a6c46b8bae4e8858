"""Compiled patterns are kept for those who compiled them, the last ones."""

from __future__ import annotations

from mneme_server.features.memory.patterns.matchers import KeptMatchers
from mneme_server.features.memory.patterns.model import Regex


def test_a_pattern_is_compiled_once_for_each_tenant_and_cleared_for_one() -> None:
    now = 1000.0
    kept = KeptMatchers(clock=lambda: now)
    first = kept.of("ann", Regex("a"))
    assert kept.of("ann", Regex("a")) is first
    assert kept.of("bob", Regex("a")) is not first
    now = 1010.0
    assert kept.clear("ann", older_s=11) == 0
    assert kept.clear("ann", older_s=10) == 1
    assert kept.clear("ann") == 0
    assert kept.clear("bob") == 1


def test_only_the_last_ones_are_kept() -> None:
    kept = KeptMatchers()
    for number in range(100):
        kept.of("ann", Regex(str(number)))
    assert 0 < kept.clear("ann") < 100
