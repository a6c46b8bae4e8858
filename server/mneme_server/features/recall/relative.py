"""Days that a query names by how far they are from the day that it is asked on, in six languages.

By tables: what they do not have is no day. English, German, French, Spanish, Chinese, Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from mneme_server.common.clock import MICROSECONDS, today
from mneme_server.engine.index.words.languages import STOPS, language_of

_WEEK = 7

Span: TypeAlias = tuple[date, int]
"""The first day that is named, and how many follow one another from it on."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """When a question is asked: the `day` of its zone, None for today in UTC; and how far that
    zone's clock is `ahead_us` of UTC's."""

    day: date | None = None
    ahead_us: int = 0

    @classmethod
    def at(cls, moment: datetime, zone: ZoneInfo) -> AsOf:
        """Return it for a moment, as a clock in a zone shows it."""
        there = moment.astimezone(zone)
        ahead = there.utcoffset() or timedelta()
        return cls(there.date(), int(ahead.total_seconds()) * MICROSECONDS)

    @property
    def today(self) -> date:
        """The day."""
        return self.day or today()


NOW = AsOf()


def spans_in(query: str, today: date) -> tuple[list[Span], str]:
    """Return the days that a query names so, and the query without them, in small letters."""
    rest = query.lower()
    language = language_of(query)
    found: list[Span] = []
    for pattern, ambiguous, span in _TABLE:
        if ambiguous and language != ambiguous:
            continue
        matches = list(pattern.finditer(rest))
        found += [span(match, today) for match in matches]
        if matches:
            rest = pattern.sub(" ", rest)
    return found, rest


def asks_for_nothing_else(rest: str) -> bool:
    """Whether what is left of a query without its days asks for nothing but what happened."""
    language = language_of(rest)
    stops = STOPS.get(language, STOPS["en"])
    words = _NOTHING_ELSE.sub(" ", rest)
    return not set(re.findall(r"[^\W_]+", words)).difference(stops, _HAPPENED)


_HAPPENED = frozenset(
    (
        "happen", "happens", "happened", "happening", "passiert", "passierte", "geschehen",
        "geschah", "los", "war", "passé", "arrivé", "passe", "pasó", "pasado", "ocurrió", "sucedió",
        "there",
    )
)  # fmt: skip
_NOTHING_ELSE = re.compile(
    "qu['’]|s['’]|est-ce|発生|发生|什么|事情|哪些|起き|ました|まし|何|なに|あっ|こと|です|[的了有事在吗呢がはにかたの么都]"
)


def _days(ago: int) -> Callable[[re.Match[str], date], Span]:
    return lambda _match, today: (today - timedelta(days=ago), 1)


def _counted(match: re.Match[str], today: date) -> Span:
    return today - timedelta(days=_number(match[1])), 1


def _week(ago: int) -> Callable[[re.Match[str], date], Span]:
    return lambda _match, today: (
        today - timedelta(days=today.weekday() + _WEEK * ago),
        _WEEK,
    )


def _weekday(names: Sequence[str]) -> Callable[[re.Match[str], date], Span]:
    """Return what tells the last day of that name before today."""

    def span(match: re.Match[str], today: date) -> Span:
        wanted = names.index(match["day"])
        return today - timedelta(days=(today.weekday() - wanted - 1) % _WEEK + 1), 1

    return span


def _weekday_of_last_week(names: Sequence[str]) -> Callable[[re.Match[str], date], Span]:
    """Return what tells the day of that name in the week before."""

    def span(match: re.Match[str], today: date) -> Span:
        wanted = names.index(match["day"])
        return today - timedelta(days=today.weekday() + _WEEK - wanted), 1

    return span


def _number(text: str) -> int:
    return _NUMBERS[text] if text in _NUMBERS else int(text)


_NUMBERS = {
    word: number
    for words in (
        "two three four five six seven eight nine ten",
        "zwei drei vier fünf sechs sieben acht neun zehn",
        "deux trois quatre cinq six sept huit neuf dix",
        "dos tres cuatro cinco seis siete ocho nueve diez",
        "二 三 四 五 六 七 八 九 十",
    )
    for number, word in enumerate(words.split(), 2)
} | {"两": 2, "einem": 1, "un": 1, "1": 1, "一": 1}
_N = r"(\d{1,3}|" + "|".join(_NUMBERS) + ")"
_ENGLISH = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_GERMAN = ["montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"]
_FRENCH = ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"]
_SPANISH = ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"]
_CHINESE = list("一二三四五六日")
_JAPANESE = list("月火水木金土日")


def _table() -> Iterator[tuple[re.Pattern[str], str, Callable[[re.Match[str], date], Span]]]:
    """Yield patterns, the language of which a query must be for certain, if one of its words means
    something else in others, and what each names. Of what begins alike the longest comes first."""

    def rows(
        *lines: tuple[str, Callable[[re.Match[str], date], Span]], ambiguous: str = ""
    ) -> Iterator[tuple[re.Pattern[str], str, Callable[[re.Match[str], date], Span]]]:
        for pattern, span in lines:
            yield re.compile(pattern), ambiguous, span

    def day(names: Sequence[str]) -> str:
        return f"(?P<day>{'|'.join(names)})"

    yield from rows(
        (r"\bthe day before yesterday\b", _days(2)),
        (r"\byesterday\b", _days(1)),
        (r"\btoday\b", _days(0)),
        (rf"\b{_N} days ago\b", _counted),
        (rf"\blast {day(_ENGLISH)}\b", _weekday(_ENGLISH)),
        (r"\blast week\b", _week(1)),
        (r"\bthis week\b", _week(0)),
    )
    yield from rows(
        (r"\bvorgestern\b", _days(2)),
        (r"\bgestern\b", _days(1)),
        (r"\bheute\b", _days(0)),
        (rf"\bvor {_N} tag(?:en)?\b", _counted),
        (rf"\b(?:letzt|vorig|vergangen)e[nrms]? {day(_GERMAN)}\b", _weekday(_GERMAN)),
        (r"\b(?:letzt|vorig|vergangen)e[nrms]? woche\b", _week(1)),
        (r"\bdiese[r]? woche\b", _week(0)),
    )
    yield from rows(
        (r"\bavant[- ]hier\b", _days(2)),
        (r"\baujourd['’]hui\b", _days(0)),
        (rf"\bil y a {_N} jours?\b", _counted),
        (rf"\b{day(_FRENCH)} (?:dernier|passé)\b", _weekday(_FRENCH)),
        (r"\bla semaine (?:dernière|passée)\b", _week(1)),
        (r"\bcette semaine\b", _week(0)),
    )
    yield from rows((r"\bhier\b", _days(1)), ambiguous="fr")
    yield from rows(
        (r"\b(?:anteayer|antes de ayer)\b", _days(2)),
        (r"\bayer\b", _days(1)),
        (rf"\bhace {_N} días?\b", _counted),
        (rf"\b(?:el )?{day(_SPANISH)} pasado\b", _weekday(_SPANISH)),
        (r"\bla semana pasada\b", _week(1)),
        (r"\besta semana\b", _week(0)),
    )
    yield from rows((r"\bhoy\b", _days(0)), ambiguous="es")
    yield from rows(
        (
            f"(?:上周|上星期|上个星期|上週|上禮拜|上礼拜){day(_CHINESE)}",
            _weekday_of_last_week(_CHINESE),
        ),
        (r"(?:上周|上星期|上个星期|上週|上禮拜|上礼拜)", _week(1)),
        (r"(?:这周|本周|这星期|这个星期|這週|本週)", _week(0)),
        (r"(?:前天|一昨日|おととい)", _days(2)),
        (r"(?:昨天|昨日|きのう)", _days(1)),
        (r"(?:今天|今日|きょう)", _days(0)),
        (rf"{_N}(?:天|日)(?:以)?前", _counted),
        (f"先週の{day(_JAPANESE)}曜日?", _weekday_of_last_week(_JAPANESE)),
        (r"先週", _week(1)),
        (r"今週", _week(0)),
    )


_TABLE = list(_table())
