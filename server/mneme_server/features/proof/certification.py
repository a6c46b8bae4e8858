"""Certified recall: what is recalled is ranked, covered, proved and signed."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING

from mneme.proof.certificates import FORMAT, certificate_text, signed_bytes

from mneme_server.common import turns
from mneme_server.common.canonical import Json, base64_text, canonical_json, whole_numbers
from mneme_server.common.clock import now_us, rfc3339
from mneme_server.common.errors import FailedPrecondition, NotFound, Unavailable
from mneme_server.common.pages import parts
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import DocumentFilter, MemoryView, ids_by_kind
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.causal.store.edges import SqlEdges
from mneme_server.features.proof.heads import Heads, LogHead
from mneme_server.features.proof.keys import KeyRing
from mneme_server.features.proof.leaves import leaves_of, require_proved
from mneme_server.features.proof.model import CertificateLimits, Leaf, StoredCertificate
from mneme_server.features.proof.store.certificates import SqlCertificates
from mneme_server.features.proof.store.log import SqlLog
from mneme_server.features.recall.model import RecallAnswer, Recalled, RecallQuery
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.model import EPISODE, SKILL
from mneme_server.features.skills.store.skills import SqlSkills

if TYPE_CHECKING:
    from mneme_server.engine.index.words.analysis import Words

MAX_CONTENT_BYTES = 2 * 1024 * 1024
"""A certificate fits a message, with the results beside it."""
_MOST_CANDIDATES = 100
_TIMES = 5
"""How often what is forgotten meanwhile has it made anew."""
_WORD = re.compile(r"\w+")
_EXACT_RESULTS = 16
"""Up to so many results the smallest set is found by looking at all sets; beyond, greedily."""
_HALF_MS = 1000.0
"""The latency that counts as 0.5."""


class AccessLevel(Enum):
    """Who may see a certificate; the names are those of `mneme.v1.AccessLevel`."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"


class RecallReason(Enum):
    """Why a result is among the results; the names are those of `mneme.v1.RecallReason`."""

    SEMANTIC_MATCH = "semantic_match"
    CAUSAL_LINK = "causal_link"
    PREREQUISITE = "prerequisite"
    CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class CertificateWeights:
    """The weights of a score: of similarity, of uplift, and of latency, which is subtracted."""

    alpha: float = 0.7
    beta: float = 0.2
    gamma: float = 0.1


@dataclass(frozen=True, slots=True)
class CertifiedCandidate:
    """What may become a result. `similarity` is None when it is not known; `edges` are the ids of
    the causal edges behind the `uplift`. `latency` is 0 to 1. `newer` is the document of the memory
    that replaced it, where recall found that, too.
    """

    memory: MemoryView
    similarity: float | None
    uplift: float = 0.0
    latency: float = 0.0
    edges: Sequence[str] = ()
    newer: int | None = None

    def score(self, weights: CertificateWeights) -> float:
        """Return its score."""
        return (
            weights.alpha * (self.similarity or 0.0)
            + weights.beta * self.uplift
            - weights.gamma * self.latency
        )


@dataclass(frozen=True, slots=True)
class CertifiedQuery:
    """What is asked, in the words of the certificate."""

    text: str
    filter: DocumentFilter
    asked: Mapping[str, Json]
    limit: int = 12
    weights: CertificateWeights = field(default_factory=CertificateWeights)
    access: AccessLevel = AccessLevel.INTERNAL


@dataclass(frozen=True, slots=True)
class CertifiedResult:
    """A result and its proof."""

    candidate: CertifiedCandidate
    score: float
    leaf: Leaf
    why: RecallReason
    path: Sequence[str]
    necessity: float
    minimal: bool
    proof: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class Certified:
    """What was recalled, with its certificate. Times are milliseconds."""

    certificate: StoredCertificate
    results: Sequence[CertifiedResult]
    coverage: QueryCoverage
    uplift_known: bool
    answer: RecallAnswer
    search_ms: float
    proof_ms: float


@dataclass(slots=True)
class DroppedCertificates:
    """Certificates that were not kept, or not any more, because there was no room for them."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class _RecallRun:
    """What was asked, what recall answered, and how its index searches vectors."""

    query: CertifiedQuery
    answer: RecallAnswer
    index_kind: str


@dataclass(frozen=True, slots=True)
class RecallWithCertificate:
    """Recalls, ranks, proves and signs.

    `server` and `model` are what the certificate says of who made it.
    """

    tenants: OpenTenants
    recall: Recall
    heads: Heads
    keys: KeyRing
    server: str
    model: Mapping[str, Json]
    kept: CertificateLimits
    dropped: DroppedCertificates = field(default_factory=DroppedCertificates)

    def certify(self, tenant_id: str, query: CertifiedQuery, *, keep: bool = True) -> Certified:
        """Return what bears on the query, with a certificate; `keep` it, if there is room.

        Whoever may not write has none kept: it would take the room of those who may.

        Raises:
            DataLoss: a result or the log is not as it was written; nothing is signed.
            FailedPrecondition: the tenant's key cannot be read, or the contents are too long.
        """
        began = time.perf_counter()
        most = min(_MOST_CANDIDATES, max(50, 4 * query.limit))
        answer = self.recall.search(
            tenant_id,
            RecallQuery(query.text, query.filter, limit=most, every_copy=False),
        )
        searched = time.perf_counter()
        with self.tenants.open(tenant_id) as tenant:
            for _ in range(_TIMES):
                made = self._made(tenant_id, tenant, _RecallRun(query, answer, tenant.index_mode))
                if self._keep(tenant, query, made, keep=keep):
                    took = (searched - began, time.perf_counter() - searched)
                    search_ms, proof_ms = (1000 * seconds for seconds in took)
                    return replace(made, search_ms=search_ms, proof_ms=proof_ms)
        raise Unavailable("what was found is being forgotten", retry_after_s=1.0)

    def stored(self, tenant_id: str, certificate_id: str) -> StoredCertificate:
        """Return a certificate that was made before.

        Raises:
            NotFound: there is none, or not any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            found = unit.get(SqlCertificates).get(certificate_id)
        if found is None:
            raise NotFound(f"there is no certificate {certificate_id!r}", field="id")
        return found

    def _made(self, tenant_id: str, tenant: OpenTenant, asked: _RecallRun) -> Certified:
        def made(unit: CorpusUnit, head: LogHead) -> Certified:
            with turns.computing():
                return self._certified(tenant_id, unit, head, asked)

        return self.heads.signed(tenant_id, tenant, made)

    def _certified(
        self, tenant_id: str, unit: CorpusUnit, head: LogHead, asked: _RecallRun
    ) -> Certified:
        query, answer = asked.query, asked.answer
        results, coverage, uplift_known = _ranked(unit, head, asked)
        _require_room(results)
        now = now_us()
        said: dict[str, Json] = {
            "format": FORMAT,
            "tenant": tenant_id,
            "created_at": rfc3339(now),
            "query": query.asked,
            "query_id": sha256(canonical_json(query.asked).encode()).hexdigest(),
            "access_level": query.access.value,
            "model": self.model,
            "index": {"kind": asked.index_kind, "feed": unit.feed.head().number},
            "server": self.server,
            "searched": answer.searched_count,
            "partial": answer.partial,
            "uplift_known": uplift_known,
            "results": [_result(result) for result in results],
            "minimal": list(coverage.minimal),
            "redundancy": coverage.redundancy,
            "completeness": coverage.completeness,
            "checkpoint": head.signed.note,
        }
        body = canonical_json(whole_numbers(said))
        signature = self.keys.sign(tenant_id, head.key, signed_bytes(body))
        text = certificate_text(body, head.key.verifier, base64_text(signature))
        certificate = StoredCertificate(sha256(text.encode()).hexdigest(), text, now)
        return Certified(certificate, results, coverage, uplift_known, answer, 0.0, 0.0)

    def _keep(
        self, tenant: OpenTenant, query: CertifiedQuery, made: Certified, *, keep: bool
    ) -> bool:
        """Store the certificate, unless one of its results was forgotten meanwhile: it would hold
        what was erased."""
        leaves = [result.leaf.index for result in made.results]
        if not keep:
            with tenant.read() as unit:
                return not unit.get(SqlLog).any_forgotten(leaves)
        with tenant.write() as unit:
            if unit.get(SqlLog).any_forgotten(leaves):
                return False
            documents = [result.candidate.memory.document for result in made.results]
            items = {(one.kind.name, one.source_id) for one in documents}
            gone = unit.get(SqlCertificates).add(made.certificate, query.filter, items, self.kept)
        self.dropped.count += gone
        return True


def _ranked(
    unit: CorpusUnit, head: LogHead, asked: _RecallRun
) -> tuple[Sequence[CertifiedResult], QueryCoverage, bool]:
    """Return the results with their proofs, how they cover the query, and whether anything is
    known of uplifts."""
    query = asked.query
    found, uplift_known = candidates(unit, asked.answer.results)
    chosen = best(unit, found, query.weights, query.limit)
    leaves = leaves_of(unit, [one.memory for _, one in chosen])
    coverage = _COVERING.find(query.text, [one.memory.document.text for _, one in chosen])
    needed = _prerequisites(unit, [one for _, one in chosen])
    results = []
    for place, ((score, one), leaf) in enumerate(zip(chosen, leaves, strict=True)):
        why, path = _reason(one, coverage.words[place], needed)
        proof = head.tree.inclusion(leaf.index)
        require_proved(leaf.hash, leaf.index, head.signed.size, head.signed.root, proof)
        necessity, minimal = coverage.necessity(place), place in coverage.minimal
        results.append(CertifiedResult(one, score, leaf, why, path, necessity, minimal, proof))
    return results, coverage, uplift_known


def _require_room(results: Sequence[CertifiedResult]) -> None:
    size = sum(len(result.leaf.content.encode()) for result in results)
    if size > MAX_CONTENT_BYTES:
        raise FailedPrecondition(
            f"the contents of the {len(results)} results are {size} bytes, and a certificate"
            f" holds {MAX_CONTENT_BYTES}: ask for fewer (limit)",
            field="limit",
        )


def _prerequisites(
    unit: CorpusUnit, found: Sequence[CertifiedCandidate]
) -> Mapping[str, Sequence[str]]:
    """Return the skills among these that others of them need first, with those."""
    skills = [c.memory.document.source_id for c in found if c.memory.document.kind == SKILL]
    if len(skills) < 2:
        return {}
    return {
        key: sorted(set(needing).intersection(skills))
        for key, needing in unit.get(SqlSkills).dependents(skills).items()
        if set(needing).intersection(skills)
    }


def _reason(
    one: CertifiedCandidate, words: Sequence[str], needed: Mapping[str, Sequence[str]]
) -> tuple[RecallReason, Sequence[str]]:
    """Return why a candidate is a result, and what led to it."""
    document = one.memory.document
    if document.kind == SKILL and document.source_id in needed:
        return RecallReason.PREREQUISITE, needed[document.source_id]
    if one.uplift > 0:
        return RecallReason.CAUSAL_LINK, one.edges
    if words or one.similarity is not None:
        return RecallReason.SEMANTIC_MATCH, words
    return RecallReason.CONSTRAINT, []


def _result(result: CertifiedResult) -> Mapping[str, Json]:
    one, leaf = result.candidate, result.leaf
    return {
        "kind": one.memory.document.kind.name,
        "id": one.memory.document.source_id,
        "leaf": leaf.index,
        "salt": base64_text(leaf.salt),
        "content": leaf.content,
        "score": result.score,
        "similarity": one.similarity,
        "uplift": one.uplift,
        "latency": one.latency,
        "reason": result.why.value,
        "path": list(result.path),
        "necessity": result.necessity,
        "proof": [base64_text(hash_) for hash_ in result.proof],
    }


@dataclass(frozen=True, slots=True)
class QueryCoverage:
    """How results cover a query.

    `words` are those of the query that each result holds. `minimal` are the places of the smallest
    set of results that holds every word that any of them holds; of several such sets, that of the
    best results. `completeness` is the share of the query's words that they hold.
    """

    words: Sequence[Sequence[str]]
    minimal: Sequence[int]
    completeness: float

    @property
    def redundancy(self) -> float:
        """The share of results that the smallest set does without."""
        return 1 - len(self.minimal) / len(self.words) if self.words else 0.0

    def necessity(self, place: int) -> float:
        """Return the share of the words held that this result alone holds."""
        held = set[str]().union(*self.words)
        others = set[str]().union(*(w for at, w in enumerate(self.words) if at != place))
        return len(held - others) / len(held) if held else 0.0


class CoverageFinder:
    """Finds which results cover a query: the words that each holds, and the smallest set that holds
    all. Words are compared by their stems, without stop words."""

    @cached_property
    def _words(self) -> Words:
        """Made for the first certificate: it brings tantivy and the stemmers of all languages."""
        from mneme_server.engine.index.words.analysis import Words

        return Words(names=False)

    def find(self, query: str, texts: Sequence[str]) -> QueryCoverage:
        """Return how these texts, the best first, cover the query."""
        asked = self._asked(query)
        held = [[asked[stem] for stem in asked if stem in found] for found in map(self._of, texts)]
        completeness = len(set().union(*held)) / len(asked) if asked else 0.0
        return QueryCoverage(held, _smallest(held), completeness)

    def _asked(self, query: str) -> dict[str, str]:
        """Return the words of a query by their stems."""
        written: dict[str, str] = {}
        for word in _WORD.findall(composed(query).lower()):
            for stem in self._of(word):
                written.setdefault(stem, word)
        return {stem: written.get(stem, stem) for stem in self._words.told(query)}

    def _of(self, text: str) -> set[str]:
        return set(self._words.english.analyze(self._words.spaced(text)))


_COVERING = CoverageFinder()


def _smallest(held: Sequence[Collection[str]]) -> Sequence[int]:
    """Return the places of the fewest that hold all that any holds; the best of those that hold
    nothing, if all do."""
    if not held:
        return []
    wanted = set[str]().union(*held)
    if not wanted:
        return [0]
    useful = _without_copies(held)
    if len(useful) <= _EXACT_RESULTS:
        for size in range(1, len(useful) + 1):
            for places in combinations(useful, size):
                if wanted.issubset(_union(held, places)):
                    return places
    return _greedy(held, wanted)


def _without_copies(held: Sequence[Collection[str]]) -> list[int]:
    """Return the places of those that hold a word, and of several that hold the same the best."""
    first = dict[frozenset[str], int]()
    for place, words in enumerate(held):
        if words:
            first.setdefault(frozenset(words), place)
    return sorted(first.values())


def _greedy(held: Sequence[Collection[str]], wanted: set[str]) -> Sequence[int]:
    left, chosen = set(wanted), list[int]()
    while left:
        gains = [len(left.intersection(words)) for words in held]
        best = gains.index(max(gains))
        chosen.append(best)
        left.difference_update(held[best])
    return sorted(chosen)


def _union(held: Sequence[Collection[str]], places: Iterable[int]) -> set[str]:
    return set[str]().union(*(held[place] for place in places))


def candidates(
    unit: CorpusUnit, found: Sequence[Recalled]
) -> tuple[Sequence[CertifiedCandidate], bool]:
    """Return candidates as they were recalled, and whether anything is known of their uplift."""
    memories = [MemoryView(result.document, result.details) for result in found]
    by_kind = ids_by_kind(memories)
    edges = unit.get(SqlEdges)
    uplifts = {kind: edges.uplifts(kind, ids) for kind, ids in by_kind.items()}
    latencies = _skill_latencies(unit, by_kind.get(SKILL.name, []))
    made = []
    for result, memory in zip(found, memories, strict=True):
        kind, key = memory.document.kind.name, memory.document.source_id
        uplift = uplifts[kind].get(key)
        similarity = result.similarity
        made.append(
            CertifiedCandidate(
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
    unit: CorpusUnit, found: Sequence[CertifiedCandidate], weights: CertificateWeights, limit: int
) -> list[tuple[float, CertifiedCandidate]]:
    """Return the best candidates, with their scores, as the snapshot has them; what is gone by then
    is left out, and what replaced another comes before it."""
    scored = _in_order([(one.score(weights), one) for one in found])
    there: list[tuple[float, CertifiedCandidate]] = []
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


def latency(milliseconds: float | None) -> float:
    """Return a latency as it counts in a score: half at a second, at most 1; 0 of none."""
    return 0.0 if milliseconds is None else milliseconds / (milliseconds + _HALF_MS)


def _in_order(
    scored: Sequence[tuple[float, CertifiedCandidate]],
) -> list[tuple[float, CertifiedCandidate]]:
    """Return the best first; what replaced another has a place as good as that one's."""
    ranks = {one.memory.document.doc_id: score for score, one in scored}
    for score, one in scored:
        if one.newer in ranks:
            ranks[one.newer] = max(score, ranks[one.newer])
    # Equal ones stay in the order of recall, which puts what replaced another before it.
    return sorted(scored, key=lambda pair: -ranks[pair[1].memory.document.doc_id])


def _newer(result: Recalled) -> int | None:
    """Return the document of what replaced a result, not of what merely says almost the same."""
    successor = result.document.kind.successor
    replaced = bool(successor and result.details.get(successor))
    return result.newer.doc_id if replaced and result.newer else None


def _skill_latencies(unit: CorpusUnit, ids: Sequence[str]) -> Mapping[str, float | None]:
    found = unit.get(SqlSkills).get_many(ids) if ids else {}
    return {key: skill.record.average_ms for key, skill in found.items()}


def _latency_ms(memory: MemoryView, of_skills: Mapping[str, float | None]) -> float | None:
    document = memory.document
    if document.kind == EPISODE:
        given = memory.details.get("latency_ms")
        return float(given) if isinstance(given, int | float) else None
    return of_skills.get(document.source_id) if document.kind == SKILL else None
