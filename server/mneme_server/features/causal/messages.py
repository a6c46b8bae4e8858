"""The messages of edges, experiments and discovery, from and to the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from google.protobuf import json_format
from mneme.v1 import causal_pb2, discovery_pb2, episode_pb2, experiment_pb2

from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import END_US
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, stored_time, struct_of, to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.causal.chains import ASSUMPTION, EffectQuery, FoundChains
from mneme_server.features.causal.discovery import as_fields
from mneme_server.features.causal.model import (
    CausalChain,
    CausalEdge,
    Correction,
    DiscoveryQuestion,
    DiscoveryReport,
    DiscoverySchedule,
    EdgeFilter,
    Experiment,
    ExperimentArm,
    ExperimentResult,
    Observation,
    Origin,
)
from mneme_server.features.skills.messages import episode_filter
from mneme_server.features.skills.model import EpisodeFilter

_METADATA = "metadata."
"""Stands before names of metadata where requests name other fields too, and may stand here."""


def new_edge(request: causal_pb2.AddEdgeRequest) -> CausalEdge:
    """Return the edge that a request adds."""
    return CausalEdge(
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


def _confounder_score(message: causal_pb2.AddEdgeRequest | causal_pb2.CausalEdge) -> float | None:
    return message.confounder_score if message.HasField("confounder_score") else None


@reads("edge")
def edge(stored: CausalEdge) -> causal_pb2.CausalEdge:
    """Return the message of an edge."""
    return causal_pb2.CausalEdge(
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
        origin=cast("causal_pb2.EdgeOrigin", stored.origin),
        low=stored.low,
        high=stored.high,
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
    )


def edge_filter(message: causal_pb2.EdgeFilter) -> EdgeFilter:
    """Return the filter of a message."""
    return EdgeFilter(
        cause=message.cause,
        effect=message.effect,
        origin=Origin(message.origin) if message.origin else None,
        min_confidence=message.min_confidence,
    )


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, Callable[[causal_pb2.CausalEdge], dict[str, Any]]] = {
    "evidence_ids": lambda message: {"evidence_ids": _ids(message.evidence_ids)},
    "experiment_ids": lambda message: {"experiment_ids": _ids(message.experiment_ids)},
    "confounder_score": lambda message: {"confounder_score": _confounder_score(message)},
    "metadata": lambda message: {
        "metadata_json": canonical_json(json_of(message, "metadata", "edge"))
    },
}


def edge_changes(message: causal_pb2.CausalEdge, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        convert = _CONVERTED.get(path)
        changes |= convert(message) if convert else {path: attrgetter(path)(message)}
    return changes


def changed_fields_only(
    given: causal_pb2.CausalEdge, named: Iterable[str]
) -> causal_pb2.CausalEdge:
    """Return an edge to validate: id and the named fields as given, none of the others."""
    message = causal_pb2.CausalEdge(id=given.id)
    for path in named:
        value = getattr(given, path)
        if path in ("evidence_ids", "experiment_ids"):
            getattr(message, path).extend(value)
        elif path == "metadata":
            message.metadata.CopyFrom(value)
        elif path != "confounder_score" or given.HasField(path):
            setattr(message, path, value)
    return message


def effect_query(request: causal_pb2.QueryEffectsRequest) -> EffectQuery:
    """Return which chains a request asks for."""
    return EffectQuery(
        cause=request.cause,
        effect=request.effect,
        min_confidence=request.min_confidence,
        min_uplift=request.min_uplift,
        max_length=request.max_length,
    )


def found_chains(found: FoundChains) -> causal_pb2.QueryEffectsResponse:
    """Return the message of chains that were found."""
    multiplied = any(len(chain.edges) > 1 for chain in found.chains)
    return causal_pb2.QueryEffectsResponse(
        chains=fitting(map(_chain, found.chains)),
        total_chains=found.total,
        assumption=ASSUMPTION if multiplied else "",
        truncated=found.truncated,
    )


def _chain(chain: CausalChain) -> causal_pb2.CausalChain:
    return causal_pb2.CausalChain(
        cause=chain.cause,
        effect=chain.effect,
        uplift=chain.uplift,
        confidence=chain.confidence,
        path=map(edge, chain.edges),
    )


def new_experiment(request: experiment_pb2.CreateExperimentRequest) -> Experiment:
    """Return the experiment that a request creates."""
    return Experiment(
        id=request.experiment_id,
        name=request.name,
        cause=request.cause,
        effect=request.effect,
        description=request.description,
        block_size=request.block_size,
        treated_per_block=request.treated_per_block or request.block_size // 2,
        seed=request.seed,
        metadata_json=canonical_json(json_of(request, "metadata")),
    )


def new_observation(request: experiment_pb2.RecordObservationRequest) -> Observation:
    """Return the observation that a request records."""
    return Observation(
        id=request.observation_id,
        outcome=request.outcome,
        subject=request.subject,
        treatment=request.treatment if request.HasField("treatment") else None,
        context_json=canonical_json(json_of(request, "context")),
        observed_us=stored_time(request, "observed_at") or 0,
    )


@reads("experiment")
def experiment(stored: Experiment) -> experiment_pb2.Experiment:
    """Return the message of an experiment."""
    return experiment_pb2.Experiment(
        id=stored.id,
        name=stored.name,
        cause=stored.cause,
        effect=stored.effect,
        description=stored.description,
        block_size=stored.block_size,
        treated_per_block=stored.treated_per_block,
        seed=stored.seed,
        metadata=struct_of(stored.metadata_json),
        status=cast("experiment_pb2.ExperimentStatus", stored.status),
        assigned_count=stored.assigned,
        observation_count=stored.observations,
        result=None if stored.result is None else result(stored.result),
        edge_id=stored.edge_id,
        created_at=to_timestamp(stored.created_us),
        completed_at=None if stored.completed_us is None else to_timestamp(stored.completed_us),
    )


def result(found: ExperimentResult) -> experiment_pb2.ExperimentResult:
    """Return the message of what observations say."""
    return experiment_pb2.ExperimentResult(
        treatment=_arm(found.treatment),
        control=_arm(found.control),
        uplift=found.uplift,
        p_value=found.p_value,
        low=found.low,
        high=found.high,
        sequential_low=found.sequential_low,
        sequential_high=found.sequential_high,
        not_assigned_count=found.not_assigned,
        notes=found.notes,
    )


def _arm(arm: ExperimentArm) -> experiment_pb2.ExperimentArm:
    return experiment_pb2.ExperimentArm(count=arm.count, mean=arm.mean, deviation=arm.deviation)


def question(request: discovery_pb2.DiscoverRequest) -> DiscoveryQuestion:
    """Return what a request asks, its defaults put in.

    Raises:
        InvalidArgument: the range of time ends before it starts.
    """
    return DiscoveryQuestion(
        filter=episode_filter(request.filter),
        adjust_for=tuple(
            dict.fromkeys(name.removeprefix(_METADATA) for name in request.adjust_for)
        ),
        min_attempts=request.min_attempts,
        min_success_rate=request.min_success_rate,
        min_confidence=request.min_confidence,
        min_sample_size=request.min_sample_size,
        fdr=request.fdr,
        correction=Correction(request.fdr_method),
        dry_run=request.dry_run,
    )


def asked_in(
    request: discovery_pb2.StartDiscoverRequest | discovery_pb2.SetDiscoveryScheduleRequest,
) -> DiscoveryQuestion:
    """Return the question that a request holds; without one, that of the defaults.

    Raises:
        InvalidArgument: its range of time ends before it starts.
    """
    with fields(filter="question.filter"):
        return question(request.question) if request.HasField("question") else DiscoveryQuestion()


def schedule(kept: DiscoverySchedule) -> discovery_pb2.DiscoverySchedule:
    """Return the message of a schedule."""
    message = discovery_pb2.DiscoverySchedule(
        enabled=kept.enabled,
        time=f"{kept.minute // 60:02}:{kept.minute % 60:02}",
        question=_request(kept.question),
        last_operation_id=kept.last_operation,
    )
    if kept.next_us is not None:
        message.next_run_at.CopyFrom(to_timestamp(kept.next_us))
    if kept.last_us is not None:
        message.last_run_at.CopyFrom(to_timestamp(kept.last_us))
    return message


def minute(time: str) -> int:
    """Return the minute of the day that HH:MM is."""
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)


def _request(kept: DiscoveryQuestion) -> discovery_pb2.DiscoverRequest:
    return discovery_pb2.DiscoverRequest(
        filter=_filter(kept.filter),
        adjust_for=kept.adjust_for,
        min_attempts=kept.min_attempts,
        min_success_rate=kept.min_success_rate,
        min_confidence=kept.min_confidence,
        min_sample_size=kept.min_sample_size,
        fdr=kept.fdr,
        fdr_method=discovery_pb2.FdrMethod.Name(kept.correction),
    )


def _filter(kept: EpisodeFilter) -> episode_pb2.EpisodeFilter | None:
    """Return the message of a filter that names nobody; None of one that leaves all."""
    message = episode_pb2.EpisodeFilter(
        project=kept.project or None,
        tags=kept.tags,
        only_successes=kept.success is True,
        only_failures=kept.success is False,
        min_reward=kept.min_reward,
    )
    for name, bound_us in (("start_time", kept.start_us), ("end_time", kept.end_us)):
        if bound_us is not None:  # Of what nothing can have, the nearest that can be said.
            said = to_timestamp(min(max(bound_us, 0), END_US - 1))
            getattr(message, name).CopyFrom(said)
    return message if message.ByteSize() else None


def discovered(found: DiscoveryReport) -> discovery_pb2.DiscoverResponse:
    """Return the message of what was discovered."""
    return json_format.ParseDict(dict(as_fields(found)), discovery_pb2.DiscoverResponse())
