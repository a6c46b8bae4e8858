"""Recalling with a certificate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256

from mneme.proof.certificates import FORMAT, certificate_text, signed_bytes

from mneme_server.common.canonical import Json, base64_text, canonical_json, whole_numbers
from mneme_server.common.clock import now_us, rfc3339
from mneme_server.common.errors import FailedPrecondition, NotFound, Unavailable
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.scheduling.foreground import Foreground, Size
from mneme_server.features.proof.covering import Coverage, Covering
from mneme_server.features.proof.heads import Head, Heads
from mneme_server.features.proof.keys import KeyRing
from mneme_server.features.proof.leaves import leaves_of, require_proved
from mneme_server.features.proof.ports import Kept, Leaf, ProofUnit, StoredCertificate
from mneme_server.features.proof.scoring import Candidate, Weights, best, candidates
from mneme_server.features.recall.search import Answer, Recall, RecallQuery
from mneme_server.features.skills.kinds import SKILL

MAX_CONTENT_BYTES = 2 * 1024 * 1024
"""A certificate fits a message, with the results beside it."""
_MOST_CANDIDATES = 100
_COVERING = Covering()
_TIMES = 5
"""How often what is forgotten meanwhile has it made anew."""


class AccessLevel(Enum):
    """Who may see a certificate; the names are those of `mneme.v1.AccessLevel`."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"


class Why(Enum):
    """Why a result is among the results; the names are those of `mneme.v1.RecallReason`."""

    SEMANTIC_MATCH = "semantic_match"
    CAUSAL_LINK = "causal_link"
    PREREQUISITE = "prerequisite"
    CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class CertifiedQuery:
    """What is asked, in the words of the certificate."""

    text: str
    filter: DocumentFilter
    asked: Mapping[str, Json]
    limit: int = 12
    weights: Weights = field(default_factory=Weights)
    access: AccessLevel = AccessLevel.INTERNAL


@dataclass(frozen=True, slots=True)
class CertifiedResult:
    """A result and its proof."""

    candidate: Candidate
    score: float
    leaf: Leaf
    why: Why
    path: Sequence[str]
    necessity: float
    minimal: bool
    proof: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class Certified:
    """What was recalled, with its certificate. Times are milliseconds."""

    certificate: StoredCertificate
    results: Sequence[CertifiedResult]
    coverage: Coverage
    uplift_known: bool
    answer: Answer
    search_ms: float
    proof_ms: float


@dataclass(slots=True)
class Tally:
    """Certificates that were not kept, or not any more, because there was no room for them."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked, what recall answered, and how its index searches vectors."""

    query: CertifiedQuery
    answer: Answer
    index_kind: str


@dataclass(frozen=True, slots=True)
class RecallWithCertificate:
    """Recalls, ranks, proves and signs.

    `server` and `model` are what the certificate says of who made it.
    """

    tenants: OpenTenants[ProofUnit]
    recall: Recall
    heads: Heads
    keys: KeyRing
    server: str
    model: Mapping[str, Json]
    kept: Kept
    foreground: Foreground = field(default_factory=Foreground)
    dropped: Tally = field(default_factory=Tally)

    def __call__(self, tenant_id: str, query: CertifiedQuery, *, keep: bool = True) -> Certified:
        """Return what bears on the query, with a certificate; `keep` it, if there is room.

        Whoever may not write has none kept: it would take the room of those who may.

        Raises:
            DataLoss: a result or the log is not as it was written; nothing is signed.
            FailedPrecondition: the tenant's key cannot be read, or the contents are too long.
        """
        began = time.perf_counter()
        most = min(_MOST_CANDIDATES, max(50, 4 * query.limit))
        answer = self.recall(
            tenant_id,
            RecallQuery(query.text, query.filter, limit=most, every_copy=False),
        )
        searched = time.perf_counter()
        with self.tenants.open(tenant_id) as tenant:
            for _ in range(_TIMES):
                made = self._made(tenant_id, tenant, _Asked(query, answer, tenant.index_mode))
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
            found = unit.certificates.get(certificate_id)
        if found is None:
            raise NotFound(f"there is no certificate {certificate_id!r}", field="id")
        return found

    def _made(self, tenant_id: str, tenant: OpenTenant[ProofUnit], asked: _Asked) -> Certified:
        def made(unit: ProofUnit, head: Head) -> Certified:
            with self.foreground.computing(Size.SMALL):
                return self._certified(tenant_id, unit, head, asked)

        return self.heads.signed(tenant_id, tenant, made)

    def _certified(self, tenant_id: str, unit: ProofUnit, head: Head, asked: _Asked) -> Certified:
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
        self, tenant: OpenTenant[ProofUnit], query: CertifiedQuery, made: Certified, *, keep: bool
    ) -> bool:
        """Store the certificate, unless one of its results was forgotten meanwhile: it would hold
        what was erased."""
        leaves = [result.leaf.index for result in made.results]
        if not keep:
            with tenant.read() as unit:
                return not unit.log.any_forgotten(leaves)
        with tenant.write() as unit:
            if unit.log.any_forgotten(leaves):
                return False
            documents = [result.candidate.memory.document for result in made.results]
            items = {(one.kind.name, one.source_id) for one in documents}
            gone = unit.certificates.add(made.certificate, query.filter, items, self.kept)
        self.dropped.count += gone
        return True


def _ranked(
    unit: ProofUnit, head: Head, asked: _Asked
) -> tuple[Sequence[CertifiedResult], Coverage, bool]:
    """Return the results with their proofs, how they cover the query, and whether anything is
    known of uplifts."""
    query = asked.query
    found, uplift_known = candidates(unit, asked.answer.results)
    chosen = best(unit, found, query.weights, query.limit)
    leaves = leaves_of(unit, [one.memory for _, one in chosen])
    coverage = _COVERING(query.text, [one.memory.document.text for _, one in chosen])
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


def _prerequisites(unit: ProofUnit, found: Sequence[Candidate]) -> Mapping[str, Sequence[str]]:
    """Return the skills among these that others of them need first, with those."""
    skills = [c.memory.document.source_id for c in found if c.memory.document.kind == SKILL]
    if len(skills) < 2:
        return {}
    return {
        key: sorted(set(needing).intersection(skills))
        for key, needing in unit.skills.dependents(skills).items()
        if set(needing).intersection(skills)
    }


def _reason(
    one: Candidate, words: Sequence[str], needed: Mapping[str, Sequence[str]]
) -> tuple[Why, Sequence[str]]:
    """Return why a candidate is a result, and what led to it."""
    document = one.memory.document
    if document.kind == SKILL and document.source_id in needed:
        return Why.PREREQUISITE, needed[document.source_id]
    if one.uplift > 0:
        return Why.CAUSAL_LINK, one.edges
    if words or one.similarity is not None:
        return Why.SEMANTIC_MATCH, words
    return Why.CONSTRAINT, []


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
