"""Counts are gathered in memory, shown at once, and not lost by a write that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from mneme_server.engine.tenants.count_buffer import CountBuffer


@dataclass
class _Count:
    times: int = 0

    def add(self, more: _Count) -> None:
        self.times += more.times


class _Tenant:
    """A tenant whose transactions do what a test says."""

    tenant_id = "acme"

    def __init__(self) -> None:
        self.stored = 0
        self.inside: Callable[[], object] = lambda: None

    @contextmanager
    def write(self) -> Iterator[_Tenant]:
        self.inside()
        yield self

    def store(self, counts: _Count) -> None:
        self.stored += counts.times


@pytest.fixture
def tenant() -> _Tenant:
    return _Tenant()


@pytest.fixture
def buffer() -> CountBuffer[_Count, Any]:
    return CountBuffer(_Count, lambda unit, counts: unit.store(counts))


def _shown(buffer: CountBuffer[_Count, Any]) -> int:
    picked = buffer.of("acme", lambda counts: counts.times)
    assert buffer.waiting("acme").times == sum(picked)
    return sum(picked)


def test_counts_add_up_until_they_are_written(
    buffer: CountBuffer[_Count, Any], tenant: _Tenant
) -> None:
    buffer.add("acme", _Count(2))
    buffer.add("acme", _Count(3))
    buffer.add("rival", _Count(7))
    assert (_shown(buffer), tenant.stored) == (5, 0)
    buffer.write(cast(Any, tenant))
    assert (_shown(buffer), tenant.stored) == (0, 5)
    assert buffer.is_waiting("rival")
    assert not buffer.is_waiting("acme")


def test_what_is_being_written_is_shown_and_what_comes_meanwhile_too(
    buffer: CountBuffer[_Count, Any], tenant: _Tenant
) -> None:
    seen: list[int] = []

    def meanwhile() -> None:
        buffer.add("acme", _Count(10))
        seen.append(_shown(buffer))

    tenant.inside = meanwhile
    buffer.add("acme", _Count(1))
    buffer.write(cast(Any, tenant))
    assert (seen, tenant.stored, _shown(buffer)) == ([11], 1, 10)


def test_a_write_that_fails_loses_nothing(
    buffer: CountBuffer[_Count, Any], tenant: _Tenant
) -> None:
    def fail() -> None:
        raise OSError("the disk is full")

    tenant.inside = fail
    buffer.add("acme", _Count(4))
    with pytest.raises(OSError, match="full"):
        buffer.write(cast(Any, tenant))
    assert (_shown(buffer), tenant.stored) == (4, 0)


def test_a_tenant_that_is_gone_leaves_nothing_behind(buffer: CountBuffer[_Count, Any]) -> None:
    buffer.add("acme", _Count(4))
    buffer.forget("acme")
    assert not buffer.is_waiting("acme")
