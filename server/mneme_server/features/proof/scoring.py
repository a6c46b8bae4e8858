"""How certified results are ranked: similarity, uplift, latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mneme_server.common.pages import parts
from mneme_server.engine.corpus.document import Memory, ids_by_kind
from mneme_server.features.proof.ports import ProofUnit
from mneme_server.features.recall.search import Recalled
from mneme_server.features.skills.kinds import EPISODE, SKILL

_HALF_MS = 1000.0
"""The latency that counts as 0.5."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a score: of similarity, of uplift, and of latency, which is subtracted."""

    alpha: float = 0.7
    beta: float = 0.2
    gamma: float = 0.1


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may become a result. `similarity` is None when it is not known; `edges` are the ids of
    the causal edges behind the `uplift`. `latency` is 0 to 1. `newer` is the document of the memory
    that replaced it, where recall found that, too."""

    memory: Memory
    similarity: float | None
    uplift: float = 0.0
    latency: float = 0.0
    edges: Sequence[str] = ()
    newer: int | None = None

    def score(self, weights: Weights) -> float:
        """Return its score."""
        return (
            weights.alpha * (self.similarity or 0.0)
            + weights.beta * self.uplift
            - weights.gamma * self.latency
        )


def candidates(unit: ProofUnit, found: Sequence[Recalled]) -> tuple[Sequence[Candidate], bool]:
    """Return candidates as they were recalled, and whether anything is known of their uplift."""
    memories = [Memory(result.document, result.details) for result in found]
    by_kind = ids_by_kind(memories)
    edges = unit.causal_edges
    uplifts = {kind: edges.uplifts(kind, ids) for kind, ids in by_kind.items()}
    latencies = _skill_latencies(unit, by_kind.get(SKILL.name, []))
    made = []
    for result, memory in zip(found, memories, strict=True):
        kind, key = memory.document.kind.name, memory.document.source_id
        uplift = uplifts[kind].get(key)
        similarity = result.similarity
        made.append(
            Candidate(
                memory,
                None if similarity is None else min(1.0, max(0.0, similarity)),
                uplift or 0.0,
                latency(_latency_ms(memory, latencies)),
                tuple(edges.touching(kind, [key])) if uplift else (),
                _newer(result),
            )
        )
    return made, any(map(bool, uplifts.values()))


def best(
    unit: ProofUnit, found: Sequence[Candidate], weights: Weights, limit: int
) -> list[tuple[float, Candidate]]:
    """Return the best candidates, with their scores, as the snapshot has them; what is gone by then
    is left out, and what replaced another comes before it."""
    scored = _in_order([(one.score(weights), one) for one in found])
    there: list[tuple[float, Candidate]] = []
    for some in parts(scored, limit):
        memories = unit.memories.get_many([one.memory.document.doc_id for _, one in some])
        there += [
            (score, replace(one, memory=memories[one.memory.document.doc_id]))
            for score, one in some
            if one.memory.document.doc_id in memories
        ]
        if len(there) >= limit:
            break
    return there[:limit]


def _in_order(scored: Sequence[tuple[float, Candidate]]) -> list[tuple[float, Candidate]]:
    """Return the best first; what replaced another has a place as good as that one's."""
    ranks = {one.memory.document.doc_id: score for score, one in scored}
    for score, one in scored:
        if one.newer in ranks:
            ranks[one.newer] = max(score, ranks[one.newer])
    # Equal ones stay in the order of recall, which puts what replaced another before it.
    return sorted(scored, key=lambda pair: -ranks[pair[1].memory.document.doc_id])


def latency(milliseconds: float | None) -> float:
    """Return a latency as it counts in a score: half at a second, at most 1; 0 of none."""
    return 0.0 if milliseconds is None else milliseconds / (milliseconds + _HALF_MS)


def _newer(result: Recalled) -> int | None:
    """Return the document of what replaced a result, not of what merely says almost the same."""
    successor = result.document.kind.successor
    replaced = bool(successor and result.details.get(successor))
    return result.newer.doc_id if replaced and result.newer else None


def _skill_latencies(unit: ProofUnit, ids: Sequence[str]) -> Mapping[str, float | None]:
    found = unit.skills.get_many(ids) if ids else {}
    return {key: skill.record.average_ms for key, skill in found.items()}


def _latency_ms(memory: Memory, of_skills: Mapping[str, float | None]) -> float | None:
    document = memory.document
    if document.kind == EPISODE:
        given = memory.details.get("latency_ms")
        return float(given) if isinstance(given, int | float) else None
    return of_skills.get(document.source_id) if document.kind == SKILL else None
