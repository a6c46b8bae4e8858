"""What was replaced comes after what replaced it, which is brought in where it was not found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from mneme_server.corpus.document import Document, Memory
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.recall.model import Recalled, Term

NEWER = "newer"

ReadSources: TypeAlias = Callable[[MemoryKind, Sequence[str]], Mapping[str, Memory]]
"""Returns memories of a kind by the ids of their sources."""


def in_place_of(there: Recalled, result: Recalled) -> Recalled:
    """Return a result as it is shown in the place of another: with the score of that one."""
    return replace(result, score=there.score, terms=gained(result.terms, there.terms))


def gained(terms: Sequence[Term], there: Sequence[Term]) -> Sequence[Term]:
    """Return a result's terms, with what it gains in the place of one with the terms `there`."""
    if not terms:
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
) -> list[Recalled]:
    """Return the results with what replaced one of them in front of it, and both naming the other.

    Args:
        shown: the results.
        found: all that were found, in their order, those shown among them.
        read: reads memories that were not found.
        passes: whether the query's filters let a document through.
        limit: how many results there may be; what is brought in takes a place among them.
        own_scores: leave those that move up their own scores.
    """
    if not any(_successor(result.document, result.details) for result in shown):
        return list(shown)
    ordered, known = list(shown), {result.document.doc_id: result for result in found}
    for replaced in shown:
        latest = _latest(replaced, read)
        if latest is None:
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
    return _naming(ordered[:limit], read)


def _naming(results: Sequence[Recalled], read: ReadSources) -> list[Recalled]:
    """Have what was replaced name what replaced it, and the other way round."""
    named = list(results)
    places = {result.document.doc_id: place for place, result in enumerate(named)}
    for place, replaced in enumerate(results):
        latest = _latest(replaced, read)
        there = None if latest is None else places.get(latest.document.doc_id)
        if there is not None:
            named[place] = replace(named[place], newer=named[there].document)
            if named[there].older is None:
                named[there] = replace(named[there], older=replaced.document)
    return named


def _latest(replaced: Recalled, read: ReadSources) -> Memory | None:
    """Return what replaced a result, and was not replaced itself; None when nothing did."""
    kind, latest = replaced.document.kind, None
    wanted = _successor(replaced.document, replaced.details)
    seen = {replaced.document.source_id}
    while wanted and wanted not in seen:
        seen.add(wanted)
        found = read(kind, [wanted]).get(wanted)
        if found is None:
            break
        latest, wanted = found, _successor(found.document, found.details)
    return latest


def _successor(document: Document, details: Mapping[str, object]) -> str:
    """Return the id of what replaced a memory; "" when nothing did."""
    return str(details.get(document.kind.successor, "")) if document.kind.successor else ""


def _brought_in(latest: Memory, replaced: Recalled) -> Recalled:
    return Recalled(latest.document, replaced.score, None, latest.details)
