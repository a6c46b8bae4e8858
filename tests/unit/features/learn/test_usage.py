"""Counts of use, between the calls that gather them and the job that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mneme_server.common.counting import MAX_COUNT
from mneme_server.common.errors import NotFound
from mneme_server.features.learn.model import Access, Lesson
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.store.reflections import SqlCounters
from mneme_server.features.learn.usage import Usage

LESSON = Lesson("l", "T", "C", "general", access_count=4, last_accessed_us=1)


class Tenant:
    """A tenant whose store may fail, and in whose transactions something may be done meanwhile."""

    tenant_id = "t"

    def __init__(self) -> None:
        self.fails = False
        self.meanwhile = lambda: None
        self.accesses: dict[str, int] = {}
        self.counters: dict[str, int] = {}

    @contextmanager
    def write(self) -> Iterator[Any]:
        def add(counts: Mapping[str, int]) -> None:
            self.counters |= counts

        def count(accesses: Mapping[str, Access]) -> None:
            for lesson_id, access in accesses.items():
                self.accesses[lesson_id] = self.accesses.get(lesson_id, 0) + access.times

        self.meanwhile()
        if self.fails:
            raise OSError
        repositories: Mapping[type, Any] = {
            SqlLessons: SimpleNamespace(count_accesses=count),
            SqlCounters: SimpleNamespace(add=add),
        }
        yield SimpleNamespace(get=repositories.__getitem__)


@pytest.fixture
def usage() -> Usage:
    gathered = Usage()
    gathered.lessons_read("t", ["l", "m"])
    gathered.lessons_read("t", ["l"])
    gathered.counted("t", {"searched": 2})
    return gathered


def write(usage: Usage, tenant: Tenant) -> None:
    usage.write(cast("Any", tenant))


def test_what_waits_is_shown_and_is_nobody_elses(usage: Usage) -> None:
    shown = usage.shown("t", LESSON)
    assert shown.access_count == 6
    assert (shown.last_accessed_us or 0) > 1
    assert usage.counters("t", {"searched": 1, "stored": 1}) == {"searched": 3, "stored": 1}
    assert usage.shown("other", LESSON) == LESSON
    assert usage.counters("other", {}) == {}


def test_a_count_stops_where_clients_can_hold_it(usage: Usage) -> None:
    full = Lesson("l", "T", "C", "general", access_count=MAX_COUNT - 1)
    assert usage.shown("t", full).access_count == MAX_COUNT


def test_what_is_written_waits_no_longer(usage: Usage) -> None:
    tenant = Tenant()
    write(usage, tenant)
    write(usage, tenant)
    assert (tenant.accesses, tenant.counters) == ({"l": 2, "m": 1}, {"searched": 2})
    assert usage.shown("t", LESSON) == LESSON
    assert not usage.is_waiting("t")


def test_what_is_counted_during_the_write_is_written_next(usage: Usage) -> None:
    tenant = Tenant()
    seen = []

    def read_once_more() -> None:
        tenant.meanwhile = lambda: None
        usage.lessons_read("t", ["l"])
        seen.append(usage.shown("t", LESSON).access_count)

    tenant.meanwhile = read_once_more
    write(usage, tenant)
    assert (seen, tenant.accesses["l"], usage.is_waiting("t")) == ([7], 2, True)
    write(usage, tenant)
    assert (tenant.accesses["l"], usage.is_waiting("t")) == (3, False)


def test_what_could_not_be_written_is_kept(usage: Usage) -> None:
    tenant = Tenant()
    tenant.fails = True
    with pytest.raises(OSError):  # noqa: PT011  # the one above
        write(usage, tenant)
    assert usage.shown("t", LESSON).access_count == 6
    tenant.fails = False
    write(usage, tenant)
    assert tenant.accesses == {"l": 2, "m": 1}


def test_the_counts_of_a_tenant_that_is_gone_are_forgotten(usage: Usage) -> None:
    class Gone:
        def open(self, tenant_id: str) -> Any:
            raise NotFound(tenant_id)

    writer = usage.writer(cast("Any", Gone()))
    assert writer.is_waiting("t")
    assert writer.step("t") is None
    assert not writer.is_waiting("t")
