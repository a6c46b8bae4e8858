"""Between the messages of edges and the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import causal_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, struct_of, to_timestamp
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.causal.chains import ASSUMPTION, EffectQuery, FoundChains
from mneme_server.features.causal.model import Chain, Edge, EdgeFilter, Origin


def new_edge(request: pb.AddEdgeRequest) -> Edge:
    """Return the edge that a request adds."""
    return Edge(
        id=request.edge_id,
        cause=request.cause,
        effect=request.effect,
        uplift=request.uplift,
        confidence=request.confidence,
        sample_size=request.sample_size,
        evidence_ids=_ids(request.evidence_ids),
        experiment_ids=_ids(request.experiment_ids),
        confounder_score=_confounder_score(request),
        mechanism=request.mechanism,
        metadata_json=canonical_json(json_of(request, "metadata")),
    )


def _ids(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))


def _confounder_score(message: pb.AddEdgeRequest | pb.CausalEdge) -> float | None:
    return message.confounder_score if message.HasField("confounder_score") else None


@reads("edge")
def edge(stored: Edge) -> pb.CausalEdge:
    """Return the message of an edge."""
    return pb.CausalEdge(
        id=stored.id,
        cause=stored.cause,
        effect=stored.effect,
        uplift=stored.uplift,
        confidence=stored.confidence,
        sample_size=stored.sample_size,
        evidence_ids=stored.evidence_ids,
        experiment_ids=stored.experiment_ids,
        confounder_score=stored.confounder_score,
        mechanism=stored.mechanism,
        metadata=struct_of(stored.metadata_json),
        origin=cast("pb.EdgeOrigin", stored.origin),
        low=stored.low,
        high=stored.high,
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
    )


def edge_filter(message: pb.EdgeFilter) -> EdgeFilter:
    """Return the filter of a message."""
    return EdgeFilter(
        cause=message.cause,
        effect=message.effect,
        origin=Origin(message.origin) if message.origin else None,
        min_confidence=message.min_confidence,
    )


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, Callable[[pb.CausalEdge], dict[str, Any]]] = {
    "evidence_ids": lambda message: {"evidence_ids": _ids(message.evidence_ids)},
    "experiment_ids": lambda message: {"experiment_ids": _ids(message.experiment_ids)},
    "confounder_score": lambda message: {"confounder_score": _confounder_score(message)},
    "metadata": lambda message: {
        "metadata_json": canonical_json(json_of(message, "metadata", "edge"))
    },
}


def edge_changes(message: pb.CausalEdge, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        convert = _CONVERTED.get(path)
        changes |= convert(message) if convert else {path: attrgetter(path)(message)}
    return changes


def changed_fields_only(given: pb.CausalEdge, named: Iterable[str]) -> pb.CausalEdge:
    """Return an edge to validate: id and the named fields as given, none of the others."""
    message = pb.CausalEdge(id=given.id)
    for path in named:
        value = getattr(given, path)
        if path in ("evidence_ids", "experiment_ids"):
            getattr(message, path).extend(value)
        elif path == "metadata":
            message.metadata.CopyFrom(value)
        elif path != "confounder_score" or given.HasField(path):
            setattr(message, path, value)
    return message


def effect_query(request: pb.QueryEffectsRequest) -> EffectQuery:
    """Return which chains a request asks for."""
    return EffectQuery(
        cause=request.cause,
        effect=request.effect,
        min_confidence=request.min_confidence,
        min_uplift=request.min_uplift,
        max_length=request.max_length,
    )


def found_chains(found: FoundChains) -> pb.QueryEffectsResponse:
    """Return the message of chains that were found."""
    multiplied = any(len(chain.edges) > 1 for chain in found.chains)
    return pb.QueryEffectsResponse(
        chains=fitting(map(_chain, found.chains)),
        total_chains=found.total,
        assumption=ASSUMPTION if multiplied else "",
        truncated=found.truncated,
    )


def _chain(chain: Chain) -> pb.CausalChain:
    return pb.CausalChain(
        cause=chain.cause,
        effect=chain.effect,
        uplift=chain.uplift,
        confidence=chain.confidence,
        path=map(edge, chain.edges),
    )
