"""Between the messages of reflections and the domain."""

from __future__ import annotations

from typing import cast

from mneme.v1 import reflection_pb2 as pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.events.outcome import Outcome
from mneme_server.features.learn.reflection_model import (
    FoundReflection,
    Reflection,
    ReflectionFilter,
    ReflectionMetrics,
    ReflectionSummary,
    Theme,
)


def new_reflection(request: pb.StoreReflectionRequest) -> Reflection:
    """Return the reflection that a request stores."""
    return Reflection(
        id=request.reflection_id,
        session_id=request.session_id,
        project=request.project,
        agent_id=request.agent_id,
        task_description=request.task_description,
        attempt_number=request.attempt_number,
        outcome=Outcome(request.outcome),
        what_worked=tuple(request.what_worked),
        what_did_not_work=tuple(request.what_did_not_work),
        next_strategy=request.next_strategy,
        tags=tuple(sorted(set(request.tags))),
        related_entity_ids=tuple(request.related_entity_ids),
        applied_reflection_ids=tuple(request.applied_reflection_ids),
    )


@reads("reflection")
def reflection(stored: Reflection) -> pb.Reflection:
    """Return the message of a reflection."""
    return pb.Reflection(
        id=stored.id,
        session_id=stored.session_id,
        project=stored.project,
        agent_id=stored.agent_id,
        task_description=stored.task_description,
        attempt_number=stored.attempt_number,
        outcome=cast("pb.Outcome", stored.outcome),
        what_worked=stored.what_worked,
        what_did_not_work=stored.what_did_not_work,
        next_strategy=stored.next_strategy,
        tags=stored.tags,
        related_entity_ids=stored.related_entity_ids,
        applied_reflection_ids=stored.applied_reflection_ids,
        created_at=to_timestamp(stored.created_us),
    )


def found_reflection(found: FoundReflection) -> pb.FoundReflection:
    """Return the message of a reflection that was found."""
    return pb.FoundReflection(
        reflection=reflection(found.reflection), score=found.score, similarity=found.similarity
    )


def reflection_filter(message: pb.ReflectionFilter) -> ReflectionFilter:
    """Return the filter of a message."""
    return ReflectionFilter(
        session_id=message.session_id,
        project=message.project,
        agent_id=message.agent_id,
        user_id=message.user_id,
        outcomes=frozenset(Outcome(outcome) for outcome in message.outcomes),
        tags=tuple(message.tags),
    )


def summary(made: ReflectionSummary) -> pb.SummarizeReflectionsResponse:
    """Return the message of a summary."""
    return pb.SummarizeReflectionsResponse(
        total_reflections=made.total,
        success_rate=made.success_rate,
        common_failures=[_theme(theme) for theme in made.common_failures],
        effective_strategies=[_theme(theme) for theme in made.effective_strategies],
        recent_lessons=fitting(map(reflection, made.recent), times=2),
        metrics=_metrics(made.metrics),
    )


def _theme(theme: Theme) -> pb.Theme:
    return pb.Theme(
        text=theme.text,
        count=theme.count,
        reflection_ids=theme.reflection_ids,
        variants=theme.variants,
    )


def _metrics(metrics: ReflectionMetrics) -> pb.ReflectionMetrics:
    return pb.ReflectionMetrics(
        store_count=metrics.store_count,
        search_count=metrics.search_count,
        hit_rate=metrics.hit_rate,
        outcome_improvement_rate=metrics.outcome_improvement_rate,
        cross_session_reuse=metrics.cross_session_reuse,
    )
