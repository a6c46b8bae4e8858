"""Dates that a query names, outright or from today, and how well a memory's day fits them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US
from mneme_server.features.recall.relative import spans_in

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_NEARNESS_DAYS = 3.0
_MONTH_MATCH = 0.5
_YEAR_MATCH = 0.2
_DAY_DIGITS = 2

_NAMES = [
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]  # fmt: skip
_MONTHS = {short: n + 1 for n, full in enumerate(_NAMES) for short in (full, full[:3])} | {
    "sept": 9
}
# Words or names, unless a number or one of the words below stands before or beside them.
_AMBIGUOUS = {"may", "mar", "march", "jun", "dec", "sep"}
_INTRODUCES = {
    "in",
    "of",
    "since",
    "during",
    "until",
    "by",
    "before",
    "after",
    "last",
    "this",
    "next",
}

_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Beside months: what numbers of a date look like, and words that ask for anything of a day.
_OF_DAYS = re.compile(r"\d{1,2}(?:st|nd|rd|th)?|(?:19|20)\d\d|happen(?:s|ed|ing)?")
_TOKEN = re.compile(r"[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year; parts that were not named are None."""

    year: int | None
    month: int | None
    day: int | None

    def ordinal(self) -> int | None:
        """Return the day's proleptic Gregorian ordinal when it is named in full and exists."""
        if self.year is None or self.month is None or self.day is None:
            return None
        try:
            return date(self.year, self.month, self.day).toordinal()
        except ValueError:
            return None


def named_dates(query: str) -> list[NamedDate]:
    """Return the dates in an English query, each once: 7 May 2023, May 7th, 2023-05-07, May."""
    found = [NamedDate(int(y), int(m), int(d)) for y, m, d in _ISO.findall(query)]
    rest = _ORDINAL.sub(r"\1", _ISO.sub(" ", query).lower())
    words = _without_of(_TOKEN.findall(rest))
    for place, word in enumerate(words):
        if word in _MONTHS and _means_month(words, place):
            found.append(_around(words, place))
    if not found:
        found = [NamedDate(int(word), None, None) for word in words if _YEAR.fullmatch(word)]
    return list(dict.fromkeys(found))


def names_days_alone(dates: Sequence[NamedDate], telling: Iterable[str]) -> bool:
    """Whether a query asks for days and nothing else.

    Args:
        dates: those that it names.
        telling: its words in small letters, without stop words.
    """
    full = bool(dates) and all(named.ordinal() is not None for named in dates)
    return full and all(_OF_DAYS.fullmatch(word) or word in _MONTHS for word in telling)


def date_match(dates: Sequence[NamedDate], timestamp_us: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how well each time (n,), by the clock of the zone that is meant, fits the dates, 0 to
    1 (n,).

    A named day counts exp(-distance / 3 days), a named month 0.5, a named year 0.2.
    """
    match = np.zeros(len(timestamp_us))
    if not dates:
        return match
    day = timestamp_us // DAY_US + EPOCH_ORDINAL
    calendar = timestamp_us.astype("datetime64[us]")
    year = calendar.astype("datetime64[Y]").astype(np.int64) + 1970
    month = calendar.astype("datetime64[M]").astype(np.int64) % 12 + 1
    for named in dates:
        if named.month is None:
            match = np.maximum(match, _YEAR_MATCH * (year == named.year))
        elif named.day is None:
            in_year = True if named.year is None else year == named.year
            match = np.maximum(match, _MONTH_MATCH * ((month == named.month) & in_year))
        else:
            for wanted in [named.year] if named.year else np.unique(year).tolist():
                ordinal = NamedDate(wanted, named.month, named.day).ordinal()
                if ordinal is not None:
                    match = np.maximum(match, np.exp(-np.abs(day - ordinal) / _NEARNESS_DAYS))
    return match


def _without_of(words: list[str]) -> list[str]:
    """Return "7 may" for "7 of may"."""
    return [
        word
        for place, word in enumerate(words)
        if not (
            word == "of"
            and 0 < place < len(words) - 1
            and words[place - 1].isdigit()
            and words[place + 1] in _MONTHS
        )
    ]


def _means_month(words: list[str], place: int) -> bool:
    if words[place] not in _AMBIGUOUS:
        return True
    beside = [words[near] for near in (place - 1, place + 1) if 0 <= near < len(words)]
    introduced = place > 0 and words[place - 1] in _INTRODUCES
    return introduced or any(_is_day(word) or _YEAR.fullmatch(word) for word in beside)


def _is_day(word: str) -> bool:
    # Python refuses to read a number of thousands of digits.
    return word.isdigit() and len(word) <= _DAY_DIGITS and 1 <= int(word) <= 31


def _around(words: list[str], place: int) -> NamedDate:
    """Return the date around a month's name."""
    beside = [words[near] for near in (place - 1, place + 1) if 0 <= near < len(words)]
    day = next((int(word) for word in beside if _is_day(word)), None)
    after = words[place + 1 : place + 3]
    year = next((int(word) for word in after if _YEAR.fullmatch(word)), None)
    return NamedDate(year, _MONTHS[words[place]], day)


def relative_days(query: str, today: date) -> list[NamedDate]:
    """Return the days that a query names by how far they are from today (yesterday, last Tuesday),
    in order; none when it names more than one day or week."""
    found, _ = spans_in(query, today)
    if len(found) != 1:
        return []
    [(first, count)] = found
    days = [first + timedelta(days=more) for more in range(count)]
    return [NamedDate(day.year, day.month, day.day) for day in days]
