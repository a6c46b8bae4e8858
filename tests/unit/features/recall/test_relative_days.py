"""Days that a query names relative to today, and whether it asks for anything else."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from mneme_server.features.recall.dates import NamedDate, relative_days
from mneme_server.features.recall.query import read_query

THURSDAY = date(2026, 11, 26)


def named(first: date, count: int = 1) -> list[NamedDate]:
    days = [first + timedelta(days=more) for more in range(count)]
    return [NamedDate(day.year, day.month, day.day) for day in days]


@pytest.mark.parametrize(
    ("query", "first", "count"),
    [
        ("what happened yesterday", date(2026, 11, 25), 1),
        ("the day before yesterday", date(2026, 11, 24), 1),
        ("what did we do today?", THURSDAY, 1),
        ("two days ago", date(2026, 11, 24), 1),
        ("what failed 30 days ago", date(2026, 10, 27), 1),
        ("Last Tuesday", date(2026, 11, 24), 1),
        ("last Thursday", date(2026, 11, 19), 1),
        ("last Friday", date(2026, 11, 20), 1),
        ("this week", date(2026, 11, 23), 7),
        ("last week", date(2026, 11, 16), 7),
    ],
)
def test_days_are_read_against_today(query: str, first: date, count: int) -> None:
    assert relative_days(query, THURSDAY) == named(first, count)


@pytest.mark.parametrize(
    "query",
    ["today or yesterday", "on Tuesday", "last month", "a few days ago", "the last day", ""],
)
def test_what_may_mean_several_days_means_none(query: str) -> None:
    assert relative_days(query, THURSDAY) == []


def test_a_date_in_full_goes_before_relative_days() -> None:
    assert read_query("what did Ann say on 2023-05-07, last week", THURSDAY).dates == named(
        date(2023, 5, 7)
    )


def test_what_reaches_today_counts_only_where_nothing_else_is_asked() -> None:
    assert read_query("what happened this week", THURSDAY).dates
    assert not read_query("what is the refund policy today", THURSDAY).dates
    assert read_query("what was the refund policy last week", THURSDAY).dates
    assert not read_query("what happened yesterday").dates


@pytest.mark.parametrize(
    ("query", "alone"),
    [
        ("what happened on 2026-11-26", True),
        ("2026-11-26", True),
        ("What did we do on the 7th of May, 2023?", True),
        ("what happened yesterday?", True),
        ("what happened two days ago", True),
        ("what did Ann do yesterday", False),
        ("what happened in May", False),
        ("what happened to order 12345 on 2026-11-26", False),
        ("what happened", False),
    ],
)
def test_a_query_of_days_and_nothing_else_is_recognised(query: str, alone: bool) -> None:
    assert read_query(query, THURSDAY).days_alone == alone
