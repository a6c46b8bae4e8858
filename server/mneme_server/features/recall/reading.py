"""What a query says besides its words: that it asks, names a day or somebody, speaks of failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from mneme_server.engine.corpus.names import naming, words_of
from mneme_server.engine.corpus.stopwords import STOP_WORDS
from mneme_server.engine.index.words.languages import asks, in_pairs
from mneme_server.features.recall.dates import NamedDate, named_dates, names_days_alone
from mneme_server.features.recall.identifiers import identifiers_in
from mneme_server.features.recall.relative_days import WORDS as RELATIVE
from mneme_server.features.recall.relative_days import relative_days

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


@dataclass(frozen=True, slots=True)
class Reading:
    """A query, read once.

    `asks` tells a question from a description; `failure` whether it speaks of something that went
    wrong. `names` are the words that may name somebody; `words` counts the distinct words,
    and of what is written in one run the pairs that the index has for words.
    `speakers` are the roles whose words are asked for: the user's by "I" and "my", the assistant's
    by a question to "you". `identified` is the share of its telling words that
    are of names in code, paths and codes, 0 to 1. `days_alone` tells that it asks for days, and for
    nothing else: "what happened on 7 May 2023?" `relative` tells that the dates are relative to
    today.
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


def read(query: str, today: date | None = None) -> Reading:
    """Return what an English query says; other languages give their question mark and names.

    With `today`, days that are named relative to it are dates, too. Those that reach it, such as
    "this week", are so only where nothing else is asked: else they often say little.

    English in Chinese, Japanese or Korean is read too, which is written around it without spaces.
    """
    apart = in_pairs(query)
    words = words_of(apart)
    asked = asks(query) or _QUESTION.match(apart) is not None
    named = named_dates(apart)
    relative = relative_days(apart, today) if today and not named else []
    telling = words.difference(STOP_WORDS, RELATIVE if relative else ())
    days_alone = names_days_alone(named or relative, telling)
    if today and not days_alone and _reach(relative, today):
        relative = []
    return Reading(
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
