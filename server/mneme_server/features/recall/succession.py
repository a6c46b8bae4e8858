"""Succession: what replaced a result, or says almost the same later, comes before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document, MemoryKind, MemoryView
from mneme_server.engine.corpus.words import STOP_WORDS
from mneme_server.features.recall.model import Recalled, Term

NEWER = "newer"

ReadSources: TypeAlias = Callable[[MemoryKind, Sequence[str]], Mapping[str, MemoryView]]
"""Returns memories of a kind by the ids of their sources."""
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


_BEFORE = re.compile(
    r"\b(?:used to|previously|formerly|earlier|originally|back then|at first)\b|\bbefore\W*$"
    r"|\b(?:früher|vorher|zuvor|ehemals|damals|ursprünglich)\b"
    r"|\b(?:auparavant|autrefois|précédemment)\b|\bavant\W*$"
    r"|\b(?:anteriormente|antiguamente|previamente)\b|\bantes\W*$"
    r"|以前|之前|曾经|过去|かつて|前は",
    re.IGNORECASE,
)


def asks_for_before(query: str) -> bool:
    """Whether a query asks for what held before: then what it names comes first, not what is newer
    ("where did she live before")."""
    return _BEFORE.search(query) is not None


def is_superseded(result: Recalled) -> bool:
    """Whether another memory replaced this one."""
    return bool(_successor(result.document, result.details))


def in_place_of(there: Recalled, result: Recalled) -> Recalled:
    """Return a result as it is shown in the place of another: with the score of that one."""
    return replace(result, score=there.score, terms=gained(result.terms, there.terms))


def gained(terms: Sequence[Term], there: Sequence[Term]) -> Sequence[Term]:
    """Return a result's terms, with what it gains in the place of one with the terms `there`."""
    if not terms and not there:
        return terms
    more = sum(t.contribution for t in there) - sum(t.contribution for t in terms)
    return by_contribution([*terms, Term(NEWER, 1.0 if more > 0 else -1.0, more)])


def by_contribution(terms: Sequence[Term]) -> list[Term]:
    """Return the terms, the largest contribution first."""
    return sorted(terms, key=lambda term: -abs(term.contribution))


def successors_first(
    shown: Sequence[Recalled],
    found: Sequence[Recalled],
    read: ReadSources,
    passes: Callable[[Document], bool],
    *,
    limit: int,
    own_scores: bool,
    before: bool = False,
) -> list[Recalled]:
    """Return the results with what replaced one of them in front of it, and both naming the other.

    Args:
        shown: the results.
        found: all that were found, in their order, those shown among them.
        read: reads memories that were not found.
        passes: whether the query's filters let a document through.
        limit: how many results there may be; what is brought in takes a place among them.
        own_scores: leave those that move up their own scores.
        before: leave each where it is, since what held before is asked for.
    """
    if not any(_successor(result.document, result.details) for result in shown):
        return list(shown)
    ordered, known = list(shown), {result.document.doc_id: result for result in found}
    latest_of = _Latest(read, found)
    for replaced in shown:
        latest = latest_of.of(replaced)
        if latest is None or before:
            continue
        ids = [result.document.doc_id for result in ordered]
        old, new = ids.index(replaced.document.doc_id), latest.document.doc_id
        if new in ids and ids.index(new) < old:
            continue
        if new in ids:
            moved = ordered.pop(ids.index(new))
        elif passes(latest.document):
            moved = known.get(new) or _brought_in(latest, replaced)
        else:
            continue
        ordered.insert(old, moved if own_scores else in_place_of(replaced, moved))
    return _naming(ordered[:limit], latest_of)


def _naming(results: Sequence[Recalled], latest_of: _Latest) -> list[Recalled]:
    """Have what was replaced name what replaced it, and that the newest that it replaced."""
    named = list(results)
    places = {result.document.doc_id: place for place, result in enumerate(named)}
    newest: dict[int, Document] = {}
    for place, replaced in enumerate(results):
        latest = latest_of.of(replaced)
        there = None if latest is None else places.get(latest.document.doc_id)
        if there is not None:
            named[place] = replace(named[place], newer=named[there].document)
            known = newest.get(there)
            if known is None or known.timestamp_us < replaced.document.timestamp_us:
                newest[there] = replaced.document
    for place, older in newest.items():
        if named[place].older is None:
            named[place] = replace(named[place], older=older)
    return named


class _Latest:
    """Tells what replaced a result, and was not replaced itself.

    Results are often of one chain, in which each was replaced by the next: each is read once, and
    those that were found are not read again.
    """

    def __init__(self, read: ReadSources, found: Sequence[Recalled]) -> None:
        self._read = read
        self._known = {
            (result.document.kind, result.document.source_id): result for result in found
        }
        self._ends: dict[tuple[MemoryKind, str], MemoryView] = {}

    def of(self, replaced: Recalled) -> MemoryView | None:
        """Return it; None when nothing replaced the result."""
        kind, latest = replaced.document.kind, None
        wanted = _successor(replaced.document, replaced.details)
        passed = {replaced.document.source_id: None}
        while wanted and wanted not in passed:
            if (end := self._ends.get((kind, wanted))) is not None:
                latest = end
                break
            found = self._memory(kind, wanted)
            if found is None:
                break
            passed[wanted] = None
            latest, wanted = found, _successor(found.document, found.details)
        if latest is not None:
            self._ends.update(((kind, source_id), latest) for source_id in passed)
        return latest

    def _memory(self, kind: MemoryKind, source_id: str) -> MemoryView | None:
        known = self._known.get((kind, source_id))
        if known is not None:
            return MemoryView(known.document, known.details)
        return self._read(kind, [source_id]).get(source_id)


def _successor(document: Document, details: Mapping[str, object]) -> str:
    """Return the id of what replaced a memory; "" when nothing did."""
    return str(details.get(document.kind.successor, "")) if document.kind.successor else ""


def _brought_in(latest: MemoryView, replaced: Recalled) -> Recalled:
    return Recalled(latest.document, replaced.score, None, latest.details)


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
