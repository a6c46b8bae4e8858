"""The messages of edges, experiments and discovery, from and to the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mneme.v1 import causal_pb2, discovery_pb2, episode_pb2, experiment_pb2

from mneme_server.common.clock import END_US
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import fitting
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.causal.chains import ASSUMPTION, EffectQuery, FoundChains
from mneme_server.features.causal.model import (
    CausalChain,
    CausalEdge,
    Correction,
    DiscoveryQuestion,
    DiscoverySchedule,
    EdgeFilter,
    Experiment,
    ExperimentResult,
    Observation,
)
from mneme_server.features.skills.messages import episode_filter
from mneme_server.features.skills.model import EpisodeFilter

_METADATA = "metadata."
"""Stands before names of metadata where requests name other fields too, and may stand here."""


def _distinct(field: str) -> Callable[[Any, str], tuple[str, ...]]:
    """Return what reads ids in their order, each once."""
    return lambda message, _path: tuple(dict.fromkeys(getattr(message, field)))


_IDS = {name: _distinct(name) for name in ("evidence_ids", "experiment_ids")}
new_edge = MessageReader(
    causal_pb2.CreateEdgeRequest, CausalEdge, spelled={"id": "edge_id"}, made=_IDS
)
"""Return the edge that a request adds."""
read_edge = MessageReader(causal_pb2.CausalEdge, CausalEdge, made=_IDS, unread=["etag"])
"""Return the edge of a message."""
edge = reads("edge")(message_writer(CausalEdge, causal_pb2.CausalEdge, unshown=["scope"]))
"""Return the message of an edge."""
edge_filter = MessageReader(causal_pb2.EdgeFilter, EdgeFilter)
"""Return the filter of a message."""
effect_query = MessageReader(causal_pb2.TraceEffectsRequest, EffectQuery, unread=["limit"])
"""Return which chains a request asks for."""


def found_chains(found: FoundChains) -> causal_pb2.TraceEffectsResponse:
    """Return the message of chains that were found."""
    multiplied = any(len(chain.edges) > 1 for chain in found.chains)
    return causal_pb2.TraceEffectsResponse(
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
    read = _new_experiment(request)
    return replace(read, treated_per_block=read.treated_per_block or read.block_size // 2)


_new_experiment = MessageReader(
    experiment_pb2.CreateExperimentRequest, Experiment, spelled={"id": "experiment_id"}
)
read_experiment = MessageReader(
    experiment_pb2.Experiment,
    Experiment,
    spelled={"result": ""},
    unread=["assigned_count", "observation_count", "result", "etag"],
)
"""Return the experiment of a message, without what the server counts and concludes."""
new_observation = MessageReader(
    experiment_pb2.RecordObservationRequest,
    Observation,
    spelled={"id": "observation_id"},
    unread=["experiment_id"],
)
"""Return the observation that a request records."""
result = message_writer(
    ExperimentResult,
    experiment_pb2.ExperimentResult,
    spelled={"not_assigned": "not_assigned_count"},
)
"""Return the message of what observations say."""
experiment = reads("experiment")(
    message_writer(
        Experiment,
        experiment_pb2.Experiment,
        spelled={"assigned": "assigned_count", "observations": "observation_count"},
        parts={"result": result},
    )
)
"""Return the message of an experiment."""


def question(asked: discovery_pb2.DiscoveryQuestion) -> DiscoveryQuestion:
    """Return what is asked, its defaults put in.

    Raises:
        InvalidArgument: the range of time ends before it starts.
    """
    return DiscoveryQuestion(
        filter=episode_filter(asked.filter),
        adjust_for=tuple(dict.fromkeys(name.removeprefix(_METADATA) for name in asked.adjust_for)),
        min_attempts=asked.min_attempts,
        min_success_rate=asked.min_success_rate,
        min_confidence=asked.min_confidence,
        min_sample_size=asked.min_sample_size,
        fdr=asked.fdr,
        correction=Correction(asked.fdr_method),
        dry_run=asked.dry_run,
        include_tools=asked.include_tools,
    )


def asked_in(
    request: discovery_pb2.DiscoverRequest | discovery_pb2.UpdateDiscoveryScheduleRequest,
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
        question=_question(kept.question),
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


def _question(kept: DiscoveryQuestion) -> discovery_pb2.DiscoveryQuestion:
    return discovery_pb2.DiscoveryQuestion(
        filter=_filter(kept.filter),
        adjust_for=kept.adjust_for,
        min_attempts=kept.min_attempts,
        min_success_rate=kept.min_success_rate,
        min_confidence=kept.min_confidence,
        min_sample_size=kept.min_sample_size,
        fdr=kept.fdr,
        fdr_method=discovery_pb2.FdrMethod.Name(kept.correction),
        include_tools=kept.include_tools,
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
