"""Dates in queries, outright or from today, and how well days fit them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.recall.dates import NamedDate, date_match, named_dates, relative_days
from mneme_server.features.recall.query import read_query
from mneme_server.features.recall.relative import AsOf


def micros(*times: datetime) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([int(time.timestamp()) * 1_000_000 for time in times], np.int64)


def at(year: int, month: int, day: int, hour: int = 12) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("What happened on 7 May 2023?", [(2023, 5, 7)]),
        ("What happened on May 7, 2023?", [(2023, 5, 7)]),
        ("on the 7th of May, 2023", [(2023, 5, 7)]),
        ("on May 7th", [(None, 5, 7)]),
        ("deployed 2023-05-07 at noon", [(2023, 5, 7)]),
        ("between 2023-05-07 and 2023-06-01", [(2023, 5, 7), (2023, 6, 1)]),
        ("in June 2023", [(2023, 6, None)]),
        ("in May, 2023", [(2023, 5, None)]),
        ("last september", [(None, 9, None)]),
        ("on 3 Sept", [(None, 9, 3)]),
        ("what changed in 2022", [(2022, None, None)]),
        ("from 2021 to 2022", [(2021, None, None), (2022, None, None)]),
        ("the month of june and of july", [(None, 6, None), (None, 7, None)]),
        ("what may fail", []),
        ("they march 500 miles", []),
        ("since march", [(None, 3, None)]),
        ("may 3 be the limit", [(None, 5, 3)]),
        ("on 7 May 2023, 2023-05-07 and May 7, 2023", [(2023, 5, 7)]),
        (f"in May {'1' * 5_000}", [(None, 5, None)]),
        ("ticket 1234", []),
        ("", []),
    ],
)
def test_dates_are_read_from_a_query(
    query: str, dates: list[tuple[int | None, int | None, int | None]]
) -> None:
    assert named_dates(query) == [NamedDate(*parts) for parts in dates]


@given(st.dates())
def test_an_iso_date_is_read_as_the_day_it_is(day: datetime) -> None:
    if 1900 <= day.year < 2100:
        (named,) = named_dates(f"on {day.isoformat()}")
        assert named.ordinal() == day.toordinal()


@given(st.text())
def test_any_text_can_be_read(query: str) -> None:
    for named in named_dates(query):
        named.ordinal()


@pytest.mark.parametrize("query", ["31 February 2023", "2023-13-01", "2023-00-10", "June 31, 2024"])
def test_a_day_that_does_not_exist_has_no_ordinal_and_fits_nothing(query: str) -> None:
    named = named_dates(query)
    assert [date.ordinal() for date in named] == [None]
    assert date_match(named, micros(at(2023, 3, 1), at(2024, 1, 1))).tolist() == [0.0, 0.0]


def test_a_named_day_counts_less_the_farther_away() -> None:
    days = [at(2023, 5, 7) + timedelta(days=distance) for distance in (0, 1, -1, 3, 30)]
    match = date_match([NamedDate(2023, 5, 7)], micros(*days))
    assert match == pytest.approx(np.exp(-np.array([0, 1, 1, 3, 30]) / 3))


@pytest.mark.parametrize("hour", [0, 23])
def test_the_hour_of_a_day_does_not_matter(hour: int) -> None:
    assert date_match([NamedDate(2023, 5, 7)], micros(at(2023, 5, 7, hour))).tolist() == [1.0]


def test_a_named_month_counts_half_and_a_named_year_a_fifth() -> None:
    times = micros(at(2023, 5, 7), at(2022, 5, 7), at(2023, 6, 1))
    assert date_match([NamedDate(2023, 5, None)], times).tolist() == [0.5, 0.0, 0.0]
    assert date_match([NamedDate(None, 5, None)], times).tolist() == [0.5, 0.5, 0.0]
    assert date_match([NamedDate(2023, None, None)], times).tolist() == [0.2, 0.0, 0.2]


def test_a_day_without_a_year_fits_that_day_of_every_year() -> None:
    times = micros(at(2021, 5, 7), at(2023, 5, 7), at(2023, 8, 7))
    assert date_match([NamedDate(None, 5, 7)], times) == pytest.approx([1, 1, 0], abs=1e-9)


def test_of_several_dates_the_best_counts() -> None:
    dates = [NamedDate(2023, None, None), NamedDate(2023, 5, 7)]
    assert date_match(dates, micros(at(2023, 5, 7), at(2023, 9, 1))) == pytest.approx([1, 0.2])


def test_no_date_and_no_memory_give_zeros() -> None:
    assert date_match([], micros(at(2023, 5, 7))).tolist() == [0.0]
    assert date_match([NamedDate(2023, 5, 7)], micros()).tolist() == []


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
    ("query", "first", "count"),
    [
        ("was haben wir gestern entschieden", date(2026, 11, 25), 1),
        ("Was war vorgestern?", date(2026, 11, 24), 1),
        ("vor drei Tagen", date(2026, 11, 23), 1),
        ("letzten Dienstag", date(2026, 11, 24), 1),
        ("was geschah letzte Woche", date(2026, 11, 16), 7),
        ("qu'avons-nous décidé hier ?", date(2026, 11, 25), 1),
        ("il y a deux jours", date(2026, 11, 24), 1),
        ("que s'est-il passé la semaine dernière", date(2026, 11, 16), 7),
        ("mardi dernier", date(2026, 11, 24), 1),
        ("¿Qué pasó ayer?", date(2026, 11, 25), 1),
        ("hace 5 días", date(2026, 11, 21), 1),
        ("el lunes pasado", date(2026, 11, 23), 1),
        ("¿Qué decidimos la semana pasada?", date(2026, 11, 16), 7),
        ("昨天发生了什么？", date(2026, 11, 25), 1),
        ("上周一我们决定了什么", date(2026, 11, 16), 1),
        ("三天前", date(2026, 11, 23), 1),
        ("上个星期谁来过", date(2026, 11, 16), 7),
        ("昨日の会議で何を決めましたか", date(2026, 11, 25), 1),
        ("先週の金曜日", date(2026, 11, 20), 1),
        ("2日前", date(2026, 11, 24), 1),
    ],
)
def test_days_are_read_in_six_languages(query: str, first: date, count: int) -> None:
    assert relative_days(query, THURSDAY) == named(first, count)


@pytest.mark.parametrize(
    "query",
    [
        "wer wohnt hier",  # French for yesterday, German for here.
        "the hoy of the harbour",
        "gesternabend",
        "todays specials, yesterdays news",
        "lundi",
    ],
)
def test_words_that_look_like_days_are_none(query: str) -> None:
    assert relative_days(query, THURSDAY) == []


@pytest.mark.parametrize(
    "query",
    [
        "what happened yesterday", "was ist gestern passiert?", "¿Qué pasó ayer?",
        "que s'est-il passé la semaine dernière ?", "昨天发生了什么？", "先週何が起きましたか",
    ],
)  # fmt: skip
def test_a_question_for_nothing_but_what_happened_asks_for_days_alone(query: str) -> None:
    assert read_query(query, THURSDAY).days_alone


def test_a_day_is_that_of_the_zone_in_which_it_is_asked() -> None:
    late = datetime(2026, 11, 26, 23, 30, tzinfo=UTC)
    berlin = AsOf.at(late, ZoneInfo("Europe/Berlin"))
    assert (berlin.today, berlin.ahead_us) == (date(2026, 11, 27), 3_600_000_000)
    assert AsOf.at(late, ZoneInfo("America/New_York")).today == date(2026, 11, 26)
    assert AsOf.at(late, ZoneInfo("UTC")) == AsOf(date(2026, 11, 26), 0)


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
