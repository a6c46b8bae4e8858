"""Words of a text by what they tell: stop words, and those by which a name is named."""

from __future__ import annotations

import re

from mneme_server.common.texts import composed

_STOP_WORDS = """
a about also an and any are aren as at be been being but by can could couldn d did didn do does
doesn doing don for from had hadn has hasn have haven having he her hers him his how i if in into
is isn it its just ll m me my of on or our ours re s she should shouldn so some t than that the
their theirs them then there these they this those to too ve was wasn we were weren what when where
which while who whom whose why will with won would wouldn you your yours
"""

STOP_WORDS = tuple(_STOP_WORDS.split())
"""English words that say how a question is put, not what it is about."""

_SHORTEST_NAME = 3
_WORD = re.compile(r"[^\W_]+")
_STOPPED = frozenset(STOP_WORDS)


def words_of(text: str) -> set[str]:
    """Return the distinct words of a text in lower case."""
    return set(_WORD.findall(composed(text).lower()))


def name_words(name: str) -> frozenset[str]:
    """Return the words of a name by which a text may name its bearer, in lower case."""
    return naming(words_of(name))


def naming(words: set[str]) -> frozenset[str]:
    """Return those of the words that may name somebody: neither short nor stop words."""
    return frozenset(word for word in words if len(word) >= _SHORTEST_NAME) - _STOPPED
