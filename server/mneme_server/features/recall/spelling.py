"""Misspelt words of a query, read as the language spells them.

A model makes little of "hoilday", and the index nothing. A word is taken to be misspelt if it is in
small letters, no English word, in no text that is searched, and a slip of the keyboard away from an
English word: two letters in the wrong order, one too many, one missing or, in a long word, a wrong
one. The first letter is seldom wrong, and stays.

`english_words.txt` has the whole words of the vocabulary of BERT (Apache License 2.0), which the
default model was made with, the commonest first, and behind them some that programmers write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from string import ascii_lowercase

from mneme_server.engine.index.words.languages import ENGLISH, language_of

_COMMON = 15_000
"""Only words that are so common are taken to be meant, by their place in the list."""
_VERY_COMMON = 6_000
"""And those where a letter is wrong: many words are one letter apart."""
_LONG = 7
"""Letters of a word of which one may be wrong."""
_FEWEST = 4
_PART = 3
"""Letters of a part of a compound."""
# Not what is part of a name, a path or an address.
_WORD = re.compile(rf"(?<![\w'’./:@#-])[a-z]{{{_FEWEST},40}}(?![\w'’/:@-]|\.\w)")
_ENDINGS = (
    "er", "ers", "ed", "es", "s", "ing", "ly", "y", "or", "ish", "ness", "less", "ful", "able",
)  # fmt: skip


def spelled(query: str, occurs: Callable[[str], bool]) -> str:
    """Return a query with its misspelt words as they are meant; itself when it has none.

    Args:
        query: in English, or in no language for certain; others stay as they are.
        occurs: whether a word is in some text that is searched: then it is no mistake.
    """
    meant = suspects(query)
    meant = {word: other for word, other in meant.items() if not occurs(word)}
    return _WORD.sub(lambda word: meant.get(word[0], word[0]), query) if meant else query


def suspects(query: str) -> Mapping[str, str]:
    """Return the words of a query that no English text has, and what each may be meant to be."""
    unknown = {word for word in _WORD.findall(query) if not _known(word)}
    if not unknown or language_of(query) not in ("", ENGLISH):
        return {}
    return {word: meant for word in sorted(unknown) if (meant := _meant(word))}


def _meant(word: str) -> str:
    """Return the commonest word that `word` may be a slip of; "" when there is none."""
    places = _places()
    for slips, common in _slips(word):
        known = [slip for slip in slips if places.get(slip, common) < common]
        if known:
            return min(known, key=places.__getitem__)
    return ""


def _slips(word: str) -> list[tuple[set[str], int]]:
    """Return what a word may be a slip of, the likeliest first, and how common that must be."""
    cuts = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    swapped.add(word[1] + word[0] + word[2:])
    added = {head + letter + tail for head, tail in cuts for letter in ascii_lowercase}
    dropped = {head + tail[1:] for head, tail in cuts if tail}
    if len(word) == _FEWEST:
        return [(swapped, _COMMON), (added, _COMMON)]
    slips = [(swapped, _COMMON), (added | dropped, _COMMON)]
    if len(word) < _LONG:
        return slips
    other = {head + letter + tail[1:] for head, tail in cuts if tail for letter in ascii_lowercase}
    return [*slips, (other, _VERY_COMMON)]


def _known(word: str) -> bool:
    """Whether a word is English: in the list, another form of what is, or made of two."""
    places = _places()
    if word in places or _stem(word) in _stems():
        return True
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _FEWEST and (stem in places or f"{stem}e" in places):
            return True
    parts = range(_PART, len(word) - _PART + 1)
    return any(word[:at] in places and word[at:] in places for at in parts)


@cache
def _places() -> Mapping[str, int]:
    """Return the English words that are known, by how common they are: 0 is the commonest."""
    listed = Path(__file__).with_name("english_words.txt").read_text("ascii").split()
    return {word: place for place, word in enumerate(listed)}


@cache
def _stems() -> frozenset[str]:
    return frozenset(_analyze()(" ".join(_places())))


def _stem(word: str) -> str:
    return "".join(_analyze()(word))


@cache
def _analyze() -> Callable[[str], list[str]]:
    # Imported when the first question is read: a start does not wait for it.
    from mneme_server.engine.index.words.analysis import analyzer

    return analyzer().analyze
