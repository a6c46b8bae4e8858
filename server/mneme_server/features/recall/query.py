"""The reading of a query: that it asks, names a day, a thing or somebody, speaks of failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Hits, Rows, Selection
from mneme_server.engine.corpus.words import STOP_WORDS, naming, words_of
from mneme_server.engine.index.words.languages import asks, in_pairs
from mneme_server.features.recall.dates import (
    EPOCH_ORDINAL,
    NamedDate,
    named_dates,
    names_days_alone,
    relative_days,
)
from mneme_server.features.recall.relative import NOW, AsOf, asks_for_nothing_else, spans_in

_QUESTION = re.compile(
    r"\W*(?:who|whom|whose|what|when|where|which|why|how|did|does|do|is|are|was|were|has|have|had"
    r"|can|could|will|would|should)\b",
    re.IGNORECASE,
)
_TO_YOU = frozenset({"you", "your", "yours"})
_PLEASE = re.compile(r"\b(?:please\W+)?(?:can|could|would|will) you\b", re.IGNORECASE)
_OF_ME = frozenset({"i", "me", "my", "mine", "myself"})
_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant"})
# Words of any program's failures, not of one domain's.
_FAILURE = re.compile(
    r"\b(?:errors?|exceptions?|fail\w*|crash\w*|reject\w*|refus\w*|den(?:y|ied)|invalid|wrong"
    r"|unable|cannot|can[’']t|could not|couldn[’']t|tim(?:ed?|ing) ?outs?|unavailable|broken?"
    r"|insufficient)\b",
    re.IGNORECASE,
)
_FEW_WORDS = 2
_SUFFIXES = (
    "py|js|ts|tsx|go|rs|java|c|cc|cpp|h|rb|php|sh|sql|md|json|ya?ml|toml|lock|cfg|conf|ini|txt|csv"
    "|log|html|css|xml"
)
# What may begin anywhere is only looked for where nothing that it could have begun with stands
# before: else a run of a thousand characters that is none would be read a thousand times.
_IDENTIFIER = re.compile(
    r"(?<![\w.-])(?<![\w.-][/\\])"
    r"(?:[A-Za-z]:\\|~?/|\./)?[\w.-]+(?:[/\\][\w.-]+)+\.\w+"  # src/app.py
    r"|(?<![\w.])(?:~?/|\./)[\w.-]+(?:/[\w.-]+)*"  # /etc/hosts
    rf"|(?<![\w-])-*\w[\w-]*\.(?:{_SUFFIXES})\b"  # config.yaml
    r"|\b[A-Za-z_]\w+(?:(?:::|\.)[a-z_]\w+)+\b"  # os.path, std::mem
    r"|\b[A-Za-z]\w*(?:Error|Exception|Warning)\b"  # KeyError
    r"|\b(?i:code|errno|status|http|error|exit|ticket|order|issue)(?i: code| status)?"
    r"[ :=#]{1,3}\d+\b"  # exit code 137
    r"|\b[A-Z]{1,10}-\d+\b"  # ORA-12345
    r"|\b\w+(?:_\w+)+\b"  # get_user
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])(?!\d+(?:st|nd|rd|th|[ap]m|[a-z]{1,2})\b)\w{4,}\b"  # 4WQ150
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"  # getUser
    r"|\b[A-Z]{6,}\b"  # ECONNREFUSED
    r"|\b\d{5,}\b"
)
# What each of them has somewhere; most questions have none of it, and are not searched.
_UNUSUAL = re.compile(r"[\d_/\\.:]|[a-z][A-Z]|[A-Z]{6}|Error|Exception|Warning")
_DAYS_AROUND_A_DATE = 3
_MOST_DAYS = 8
"""The first days that a query names are searched once more; the lines of a log name hundreds."""


@dataclass(frozen=True, slots=True)
class QueryReading:
    """A query, read once.

    `asks` tells a question from a description; `failure` whether it speaks of something that went
    wrong. `names` are the words that may name somebody; `words` counts the distinct words,
    and of what is written in one run the pairs that the index has for words.
    `speakers` are the roles whose words are asked for: the user's by "I" and "my", the assistant's
    by a question to "you". `identified` is the share of its telling words that
    are of names in code, paths and codes, 0 to 1. `days_alone` tells that it asks for days, and for
    nothing else: "what happened on 7 May 2023?" `relative` tells that the dates are relative to
    today; its days are those of a clock that is `ahead_us` of UTC's.
    """

    asks: bool
    failure: bool
    dates: Sequence[NamedDate]
    names: frozenset[str]
    words: int
    speakers: frozenset[str] = frozenset()
    identified: float = 0.0
    days_alone: bool = False
    relative: bool = False
    ahead_us: int = 0


def read_query(query: str, today: date | None = None) -> QueryReading:
    """Return what an English query says; other languages give their question mark and names.

    With `today`, days that are named relative to it are dates, too. Those that reach it, such as
    "this week", are so only where nothing else is asked: else they often say little.

    English in Chinese, Japanese or Korean is read too, which is written around it without spaces.
    """
    apart = in_pairs(query)
    words = words_of(apart)
    asked = asks(query) or _QUESTION.match(apart) is not None
    named = named_dates(apart)
    relative = relative_days(query, today) if today and not named else []
    if relative and today:
        days_alone = asks_for_nothing_else(spans_in(query, today)[1])
    else:
        days_alone = names_days_alone(named, words.difference(STOP_WORDS))
    if today and not days_alone and _reach(relative, today):
        relative = []
    return QueryReading(
        asks=asked,
        failure=_FAILURE.search(apart) is not None,
        dates=named or relative,
        names=naming(words_of(query) | words),
        words=len(words),
        speakers=_speakers(apart, words, asked=asked),
        identified=_identified(query, words),
        days_alone=days_alone,
        relative=bool(relative),
    )


def as_asked(query: str) -> str:
    """Return a query as the model is to read it: a question in English with its mark.

    Models were made with questions that have it; without, they find less.
    """
    question = _QUESTION.match(query) is not None and not asks(query)
    return f"{query.rstrip()}?" if question else query


def _reach(days: Sequence[NamedDate], today: date) -> bool:
    return today.toordinal() in [day.ordinal() for day in days]


def _identified(query: str, words: set[str]) -> float:
    identifiers = identifiers_in(query)
    telling = words.difference(STOP_WORDS) if identifiers else set[str]()
    if not telling:
        return 0.0
    return len(telling & words_of(" ".join(identifiers))) / len(telling)


def _speakers(query: str, words: set[str], *, asked: bool) -> frozenset[str]:
    if asked and words & _TO_YOU and words_of(_PLEASE.sub("", query, count=1)) & _TO_YOU:
        return _ASSISTANT
    return _USER if words & _OF_ME else frozenset()


def identifiers_in(query: str) -> list[str]:
    """Return the names in code, paths and codes that a query holds, each once: what is either there
    or not, whatever a model makes of it.

    A few words with a digit among them are one, unless they name a date: "v1.2.3", "4412". One ends
    where Chinese, Japanese or Korean begins, which is written around it without spaces.
    """
    apart = in_pairs(query)
    found = _IDENTIFIER.findall(apart) if _UNUSUAL.search(apart) else []
    few = not found and len(apart.split()) <= _FEW_WORDS and any(map(str.isdigit, apart))
    if few and not named_dates(apart):
        return [apart.strip()]
    return list(dict.fromkeys(found))


def read_query_for(
    index: CorpusIndex, query: str, selection: Selection, as_of: AsOf = NOW
) -> QueryReading:
    """Read a query as of when it is asked.

    "Last week" counts as a date only if something selected is of that week: in a question about a
    talk of years ago it means another.
    """
    reading = replace(read_query(query, as_of.today), ahead_us=as_of.ahead_us)
    days = _days(reading) if reading.relative else []
    some = any(_then(index, selection, reading, day, around=0).any() for day in days)
    return replace(read_query(query), ahead_us=as_of.ahead_us) if days and not some else reading


def by_named_day(
    index: CorpusIndex,
    reading: QueryReading,
    selection: Selection,
    search: Callable[[Selection, int], Hits],
    count: int,
) -> Iterator[Hits]:
    """Search the days that the query names once more, so that what happened then is looked at: up
    to `count` by its words, and of a query that asks for days alone, what is nearest in time."""
    for day in _days(reading)[:_MOST_DAYS]:
        mask = _then(index, selection, reading, day, around=_DAYS_AROUND_A_DATE)
        some = int(np.count_nonzero(mask))
        if some:
            yield search(Selection(mask, some, everything=False), count)
        if some and reading.days_alone:
            noon_us = _start_us(reading, day) + DAY_US // 2
            yield _nearest(index, np.flatnonzero(mask), noon_us, count)


def _days(reading: QueryReading) -> list[int]:
    """Return the ordinals of the days that a query names in full."""
    return [day for named in reading.dates if (day := named.ordinal()) is not None]


def _start_us(reading: QueryReading, day: int) -> int:
    """Return when a day begins where the question is asked."""
    return (day - EPOCH_ORDINAL) * DAY_US - reading.ahead_us


def _then(
    index: CorpusIndex, selection: Selection, reading: QueryReading, day: int, *, around: int
) -> NDArray[np.bool_]:
    """Return which of the selected memories are of a day, or of `around` days beside it."""
    start_us = _start_us(reading, day)
    then = DocumentFilter(
        start_us=start_us - around * DAY_US,
        end_us=start_us + (around + 1) * DAY_US,
        include_archived=True,
    )
    mask: NDArray[np.bool_] = selection.mask & index.select(then).mask[: len(selection.mask)]
    return mask


def _nearest(index: CorpusIndex, rows: Rows, time_us: int, count: int) -> Hits:
    """Return the rows that are nearest to a time, whatever their words."""
    apart_us = np.abs(index.columns.timestamp_us[rows] - time_us)
    nearest = rows[np.argsort(apart_us, kind="stable")[:count]]
    return Hits(nearest, np.zeros(len(nearest), np.float32))
