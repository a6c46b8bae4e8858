"""Translation between the messages of certificates and proofs and the domain."""

from __future__ import annotations

from collections.abc import Mapping

from mneme.v1 import certificate_pb2, proof_service_pb2

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.conversions import time_range, to_timestamp
from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.features.memory.model import MEMORY
from mneme_server.features.proof.certification import (
    AccessLevel,
    CertificateWeights,
    Certified,
    CertifiedQuery,
    CertifiedResult,
)
from mneme_server.features.proof.heads import LogHead
from mneme_server.features.proof.model import LogKey, StoredCertificate
from mneme_server.features.proof.verification import (
    CertificateVerdict,
    CertifiedState,
    Consistency,
    Inclusion,
)
from mneme_server.features.skills.model import EPISODE, SKILL

_TEXT_CHARACTERS = 8_192
"""So much of a text stands beside the certificate, which holds all of it."""
_ACCESS = {
    certificate_pb2.AccessLevel.Value(f"ACCESS_LEVEL_{level.name}"): level for level in AccessLevel
}
_KINDS = frozenset({MEMORY, EPISODE, SKILL})


def certified_query(
    request: certificate_pb2.RecallWithCertificateRequest, kinds: Mapping[str, MemoryKind]
) -> CertifiedQuery:
    """Return what a request asks; `kinds` are those that there are, by name.

    Raises:
        InvalidArgument: it names a kind that is none of them.
    """
    wanted = _kinds(request, kinds) or _KINDS
    start_us, end_us = time_range(request)
    filters: dict[str, Json] = {
        "agent_id": request.agent_id,
        "session_id": request.session_id,
        "user_id": request.user_id,
        "project": request.project,
        "start_time": None if start_us is None else str(start_us),
        "end_time": None if end_us is None else str(end_us),
        "tags": sorted(set(request.tags)),
    }
    asked: dict[str, Json] = {
        "text": request.query,
        "scopes": sorted(kind.name for kind in wanted),
        "limit": request.limit,
        "alpha": request.alpha,
        "beta": request.beta,
        "gamma": request.gamma,
        "filter": {name: value for name, value in filters.items() if value},
    }
    return CertifiedQuery(
        text=request.query,
        filter=DocumentFilter(
            kinds=wanted,
            agent_id=request.agent_id,
            session_id=request.session_id,
            user_id=request.user_id,
            project=request.project,
            start_us=start_us,
            end_us=end_us,
            tags=frozenset(request.tags),
        ),
        asked=asked,
        limit=request.limit,
        weights=CertificateWeights(request.alpha, request.beta, request.gamma),
        access=_ACCESS[request.access_level],
    )


def certified(made: Certified) -> certificate_pb2.RecallWithCertificateResponse:
    """Return the message of what was recalled."""
    return certificate_pb2.RecallWithCertificateResponse(
        results=map(_result, made.results),
        certificate=certificate(made.certificate),
        redundancy=made.coverage.redundancy,
        completeness=made.coverage.completeness,
        uplift_known=made.uplift_known,
        searched_count=made.answer.searched_count,
        search_ms=made.search_ms,
        proof_ms=made.proof_ms,
        partial=made.answer.partial,
    )


def certificate(stored: StoredCertificate) -> certificate_pb2.Certificate:
    """Return the message of a certificate."""
    return certificate_pb2.Certificate(
        id=stored.id, json=stored.text, created_at=to_timestamp(stored.created_us)
    )


def verdict(found: CertificateVerdict) -> certificate_pb2.VerifyCertificateResponse:
    """Return the message of what was found about a certificate."""
    return certificate_pb2.VerifyCertificateResponse(
        valid=not found.problems,
        problems=[
            certificate_pb2.CertificateProblem(part=one.part, message=one.message)
            for one in found.problems
        ],
        results=map(_state, found.states),
        created_at=None if found.created_us is None else to_timestamp(found.created_us),
    )


def checkpoint(head: LogHead) -> proof_service_pb2.GetCheckpointResponse:
    """Return the message of a head."""
    return proof_service_pb2.GetCheckpointResponse(
        note=head.signed.note,
        origin=head.signed.origin,
        size=head.signed.size,
        root_hash=head.signed.root,
        verifier_key=str(head.key.verifier),
        previous_note="" if head.previous is None else head.previous.note,
    )


def consistency(found: Consistency) -> proof_service_pb2.GetConsistencyProofResponse:
    """Return the message of a consistency proof."""
    return proof_service_pb2.GetConsistencyProofResponse(
        old_size=found.old_size,
        new_size=found.new_size,
        hashes=found.hashes,
        origin=found.origin,
    )


def inclusion(found: Inclusion) -> proof_service_pb2.GetInclusionProofResponse:
    """Return the message of an inclusion proof."""
    leaf = found.leaf
    return proof_service_pb2.GetInclusionProofResponse(
        leaf_index=leaf.index,
        size=found.size,
        leaf_hash=leaf.hash,
        hashes=found.hashes,
        origin=found.origin,
        source_type=leaf.kind if leaf.source_id else "",
        source_id=leaf.source_id,
        forgotten_at=None if leaf.forgotten_us is None else to_timestamp(leaf.forgotten_us),
    )


def log_key(key: LogKey) -> proof_service_pb2.LogKey:
    """Return the message of a key."""
    return proof_service_pb2.LogKey(
        number=key.number,
        verifier_key=str(key.verifier),
        created_at=to_timestamp(key.created_us),
        retired_at=None if key.retired_us is None else to_timestamp(key.retired_us),
        introduction=key.introduction,
    )


def kind_named(name: str, kinds: Mapping[str, MemoryKind], field: str) -> MemoryKind:
    """Return the kind of memory of this name.

    Raises:
        InvalidArgument: there is none.
    """
    found = kinds.get(name.lower())
    if found is None:
        raise InvalidArgument(
            f"{name!r} is not a kind of memory; known kinds: {', '.join(kinds)}", field=field
        )
    return found


def _kinds(
    request: certificate_pb2.RecallWithCertificateRequest, kinds: Mapping[str, MemoryKind]
) -> frozenset[MemoryKind]:
    return frozenset(
        kind_named(name, kinds, f"scopes[{place}]") for place, name in enumerate(request.scopes)
    )


def _result(result: CertifiedResult) -> certificate_pb2.CertifiedResult:
    one, document = result.candidate, result.candidate.memory.document
    return certificate_pb2.CertifiedResult(
        source_type=document.kind.name,
        source_id=document.source_id,
        text=document.text[:_TEXT_CHARACTERS],
        score=result.score,
        similarity=one.similarity,
        uplift=one.uplift,
        latency=one.latency,
        reason=f"RECALL_REASON_{result.why.name}",
        necessity=result.necessity,
        path=result.path,
        minimal=result.minimal,
        leaf_index=result.leaf.index,
    )


def _state(state: CertifiedState) -> certificate_pb2.CertifiedState:
    return certificate_pb2.CertifiedState(
        source_type=state.item.source_type,
        source_id=state.item.source_id,
        state=f"CERTIFIED_STATE_KIND_{state.since.name}",
        leaf_index=state.item.leaf_index,
        newest_leaf_index=state.newest,
        forgotten_at=None if state.forgotten_us is None else to_timestamp(state.forgotten_us),
    )
