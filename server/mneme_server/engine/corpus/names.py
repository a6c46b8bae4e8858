"""By which words a name is named."""

from __future__ import annotations

import re

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.stopwords import STOP_WORDS

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
