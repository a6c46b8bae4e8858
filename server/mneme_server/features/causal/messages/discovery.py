"""Between the messages of discovery and the domain."""

from __future__ import annotations

from google.protobuf import json_format
from mneme.v1 import discovery_pb2 as pb
from mneme.v1 import episode_pb2

from mneme_server.common.clock import END_US
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.errors import fields
from mneme_server.features.causal.discovery_model import Correction, Discovered, Question
from mneme_server.features.causal.nightly import Schedule
from mneme_server.features.causal.running import as_fields
from mneme_server.features.skills.episode_model import EpisodeFilter
from mneme_server.features.skills.messages.episodes import episode_filter

_METADATA = "metadata."
"""Stands before names of metadata where requests name other fields too, and may stand here."""


def question(request: pb.DiscoverRequest) -> Question:
    """Return what a request asks, its defaults put in.

    Raises:
        InvalidArgument: the range of time ends before it starts.
    """
    return Question(
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


def asked_in(request: pb.StartDiscoverRequest | pb.SetDiscoveryScheduleRequest) -> Question:
    """Return the question that a request holds; without one, that of the defaults.

    Raises:
        InvalidArgument: its range of time ends before it starts.
    """
    with fields(filter="question.filter"):
        return question(request.question) if request.HasField("question") else Question()


def schedule(kept: Schedule) -> pb.DiscoverySchedule:
    """Return the message of a schedule."""
    message = pb.DiscoverySchedule(
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


def _request(kept: Question) -> pb.DiscoverRequest:
    return pb.DiscoverRequest(
        filter=_filter(kept.filter),
        adjust_for=kept.adjust_for,
        min_attempts=kept.min_attempts,
        min_success_rate=kept.min_success_rate,
        min_confidence=kept.min_confidence,
        min_sample_size=kept.min_sample_size,
        fdr=kept.fdr,
        fdr_method=pb.FdrMethod.Name(kept.correction),
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


def discovered(found: Discovered) -> pb.DiscoverResponse:
    """Return the message of what was discovered."""
    return json_format.ParseDict(dict(as_fields(found)), pb.DiscoverResponse())
