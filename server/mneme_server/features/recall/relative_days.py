"""Days that an English query names by how far they are from today: yesterday, last Tuesday."""

from __future__ import annotations

import re
from datetime import date, timedelta

from mneme_server.features.recall.dates import NamedDate

_WEEK = 7
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_AGO = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_COUNTS)}) days ago\b")
_LAST = re.compile(rf"\blast ({'|'.join(_WEEKDAYS)})\b")
_WEEKS = re.compile(r"\b(this|last) week\b")
_DAYS = re.compile(r"\b(the day before yesterday|yesterday|today)\b")
_DAYS_AGO = {"today": 0, "yesterday": 1, "the day before yesterday": 2}

WORDS = frozenset([*_WEEKDAYS, *_COUNTS, "last", "week", "day", "days", "ago", "before"]) | set(
    _DAYS_AGO
)
"""That say which days are meant."""


def relative_days(query: str, today: date) -> list[NamedDate]:
    """Return the days, in order; none when the query names more than one day or week."""
    found = _spans(query.lower(), today)
    if len(found) != 1:
        return []
    [(first, count)] = found
    days = [first + timedelta(days=more) for more in range(count)]
    return [NamedDate(day.year, day.month, day.day) for day in days]


def _spans(query: str, today: date) -> list[tuple[date, int]]:
    """Return the first day and the number of days of all that is named."""
    weekday = today.weekday()
    ago = [_DAYS_AGO[words] for words in _DAYS.findall(query)]
    ago += [_COUNTS.index(n) + 2 if n in _COUNTS else int(n) for n in _AGO.findall(query)]
    ago += [(weekday - _WEEKDAYS.index(name) - 1) % _WEEK + 1 for name in _LAST.findall(query)]
    weeks = [weekday + _WEEK * (which == "last") for which in _WEEKS.findall(query)]
    return [
        *((today - timedelta(days=days), 1) for days in ago),
        *((today - timedelta(days=days), _WEEK) for days in weeks),
    ]
