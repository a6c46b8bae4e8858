"""Between the messages of episodes and the domain."""

from __future__ import annotations

from mneme.v1 import episode_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_time,
    struct_of,
    time_range,
    to_timestamp,
)
from mneme_server.features.skills.episode_model import (
    CritiquePoint,
    CritiqueSummary,
    Episode,
    EpisodeFilter,
    FoundEpisode,
    NewEpisode,
)


def new_episode(request: pb.StoreEpisodeRequest) -> NewEpisode:
    """Return the episode that a request stores."""
    return NewEpisode(
        id=request.episode_id,
        task=request.task,
        reward=request.reward if request.HasField("reward") else None,
        success=request.success if request.HasField("success") else None,
        session_id=request.session_id,
        agent_id=request.agent_id,
        user_id=request.user_id,
        project=request.project,
        input=request.input,
        output=request.output,
        critique=request.critique,
        latency_ms=request.latency_ms if request.HasField("latency_ms") else None,
        tokens_used=request.tokens_used if request.HasField("tokens_used") else None,
        tools=tuple(request.tools),
        tags=tuple(request.tags),
        metadata_json=canonical_json(json_of(request, "metadata")),
        occurred_us=stored_time(request, "occurred_at"),
        memory_ids=tuple(sorted(set(request.memory_ids))),
    )


def imported_episode(message: pb.Episode, field: str) -> Episode:
    """Return the episode of a message as it was exported; `field` is its path in the request."""
    return Episode(
        id=message.id,
        task=message.task,
        reward=message.reward,
        success=message.success,
        session_id=message.session_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        project=message.project,
        input=message.input,
        output=message.output,
        critique=message.critique,
        latency_ms=message.latency_ms if message.HasField("latency_ms") else None,
        tokens_used=message.tokens_used if message.HasField("tokens_used") else None,
        tools=tuple(message.tools),
        tags=tuple(sorted(set(message.tags))),
        metadata_json=canonical_json(json_of(message, "metadata", field)),
        occurred_us=stored_time(message, "occurred_at", field) or 0,
        created_us=stored_time(message, "created_at", field) or 0,
        filled=tuple(message.filled_fields),
        memory_ids=tuple(sorted(set(message.memory_ids))),
    )


@reads("episode")
def episode(stored: Episode) -> pb.Episode:
    """Return the message of an episode."""
    return pb.Episode(
        id=stored.id,
        session_id=stored.session_id,
        agent_id=stored.agent_id,
        user_id=stored.user_id,
        project=stored.project,
        task=stored.task,
        input=stored.input,
        output=stored.output,
        critique=stored.critique,
        reward=stored.reward,
        success=stored.success,
        latency_ms=stored.latency_ms,
        tokens_used=stored.tokens_used,
        tools=stored.tools,
        tags=stored.tags,
        metadata=struct_of(stored.metadata_json),
        occurred_at=to_timestamp(stored.occurred_us),
        created_at=to_timestamp(stored.created_us),
        filled_fields=stored.filled,
        memory_ids=stored.memory_ids,
    )


def found_episode(found: FoundEpisode) -> pb.FoundEpisode:
    """Return the message of an episode that was found."""
    return pb.FoundEpisode(
        episode=episode(found.episode), score=found.score, similarity=found.similarity
    )


def episode_filter(message: pb.EpisodeFilter) -> EpisodeFilter:
    """Return the filter of a message.

    Raises:
        InvalidArgument: the range of time ends before it starts.
    """
    start_us, end_us = time_range(message)
    return EpisodeFilter(
        session_id=message.session_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        project=message.project,
        tags=tuple(message.tags),
        success=True if message.only_successes else False if message.only_failures else None,
        min_reward=message.min_reward if message.HasField("min_reward") else None,
        start_us=start_us,
        end_us=end_us,
    )


def critique_summary(made: CritiqueSummary) -> pb.CritiqueSummary:
    """Return the message of what critiques say."""
    return pb.CritiqueSummary(
        points=map(critique_point, made.points),
        more_count=made.more,
        with_critique=made.with_critique,
        without_critique=made.without_critique,
        text=made.text,
    )


def critique_point(point: CritiquePoint) -> pb.CritiquePoint:
    """Return the message of something that critiques say."""
    return pb.CritiquePoint(
        text=point.text,
        episode_ids=point.episode_ids,
        failure_count=point.failures,
        success_count=point.successes,
    )
