"""Two memories that say almost the same at different times: the newer one comes first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.stopwords import STOP_WORDS

COMPARED = 20
"""So many of the first results are compared with each other."""
_ALIKE = 0.6
"""Share of their words that two have in common, of all that either has."""
_FEWEST = 2
_DIFFERENT_TIMES_US = 60_000_000
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WHETHER = re.compile(r"\W*(?:did|does|do|is|are|was|were|has|have|had)\b", re.IGNORECASE)
# What may be another without anything else being said of it.
_VALUES = frozenset(
    (
        "january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep",
        "sept", "oct", "nov", "dec", "monday", "tuesday", "wednesday", "thursday", "friday",
        "saturday", "sunday", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "today", "tomorrow",
        "yesterday", "now", "not", "no", "longer", "instead", "actually", "st", "nd", "rd", "th",
        "am", "pm",
    )
)  # fmt: skip
_UNTOLD = frozenset(STOP_WORDS) | _VALUES


def versions(documents: Sequence[Document]) -> list[list[int]]:
    """Return groups of documents that say almost the same, by their places, each in order.

    What has a shape, a tool's answer or an error, is an event of its own, not a version of another;
    so is a session's summary.
    """
    words = [_telling(document) for document in documents[:COMPARED]]
    groups: list[list[int]] = []
    taken: set[int] = set()
    for place, mine in enumerate(words):
        if place in taken or not mine:
            continue
        group = [place] + [
            other
            for other in _alike(mine, words, place + 1)
            if other not in taken and _are_versions(documents[place], documents[other])
        ]
        if len(group) > 1:
            taken.update(group)
            groups.append(group)
    return groups


def picked_by(query: str) -> frozenset[str]:
    """Return the numbers by which a query picks one of a series: "what did chapter 7 say".

    A question whether something holds picks nothing: "is the deadline still May 7".
    """
    return frozenset() if _WHETHER.match(query) else frozenset(_NUMBER.findall(query))


def newest_first(
    group: Sequence[int], documents: Sequence[Document], picked: frozenset[str] = frozenset()
) -> list[int]:
    """Return a group's places in the order in which they are to be shown.

    What has more of the numbers that the query picks by comes before what is newer.
    """

    def key(place: int) -> tuple[int, int, int]:
        numbers = picked.intersection(_NUMBER.findall(documents[place].text)) if picked else ()
        return -len(numbers), -documents[place].timestamp_us, place

    return sorted(group, key=key)


def _telling(document: Document) -> frozenset[str]:
    if document.shape or not (document.spoken or not document.session_id):
        return frozenset()
    words = frozenset(_WORD.findall(composed(document.text).lower())) - _UNTOLD
    return words if len(words) >= _FEWEST else frozenset()


def _alike(one: frozenset[str], words: Sequence[frozenset[str]], start: int) -> list[int]:
    """Return the places from `start` on that have most of their words in common with `one`."""
    # What both have is part of what either has, so one is not much shorter than the other.
    fewest, most = max(_FEWEST, _ALIKE * len(one)), len(one) / _ALIKE
    return [
        place
        for place, other in enumerate(words[start:], start)
        if fewest <= len(other) <= most
        and (shared := len(one & other)) >= fewest
        and shared >= _ALIKE * (len(one) + len(other) - shared)
    ]


def _are_versions(one: Document, other: Document) -> bool:
    apart = abs(one.timestamp_us - other.timestamp_us) >= _DIFFERENT_TIMES_US
    same_teller = one.kind == other.kind and one.user_id == other.user_id
    return apart and same_teller and one.text != other.text
