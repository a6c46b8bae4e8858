"""Translation between the messages of LearnService and the domain: of lessons, reflections and the
knowledge log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import common_pb2
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as pb
from mneme.v1 import reflection_pb2 as reflection_pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, stored_time, struct_of, to_timestamp
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.events.model import Outcome
from mneme_server.features.learn.model import (
    FoundKnowledge,
    FoundLesson,
    FoundReflection,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeType,
    Lesson,
    LessonFilter,
    LessonImportance,
    Reflection,
    ReflectionFilter,
    ReflectionMetrics,
    ReflectionSummary,
    SuccessRate,
    Theme,
)

# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, tuple[str, Callable[[pb.Lesson], Any]]] = {
    "importance": ("importance", lambda message: LessonImportance(message.importance)),
    "tags": ("tags", lambda message: tuple(sorted(set(message.tags)))),
    "context": (
        "context_json",
        lambda message: canonical_json(json_of(message, "context", "lesson")),
    ),
}


def new_lesson(request: pb.CreateLessonRequest) -> Lesson:
    """Return the lesson that a request saves."""
    return Lesson(
        id=request.lesson_id,
        title=request.title,
        content=request.content,
        category=request.category,
        importance=LessonImportance(request.importance),
        agent_id=request.agent_id,
        project=request.project,
        tags=tuple(sorted(set(request.tags))),
        context_json=canonical_json(json_of(request, "context")),
        source_session_id=request.source_session_id,
        source_event_id=request.source_event_id,
    )


def imported_lesson(message: pb.Lesson, field: str) -> Lesson:
    """Return the lesson of a message as it was exported; `field` is its path in the request.

    The message's etag is not looked at: a lesson's etag follows from the rest of it.
    """
    return Lesson(
        id=message.id,
        title=message.title,
        content=message.content,
        category=message.category,
        importance=LessonImportance(message.importance),
        agent_id=message.agent_id,
        project=message.project,
        tags=tuple(sorted(set(message.tags))),
        context_json=canonical_json(json_of(message, "context", field)),
        source_session_id=message.source_session_id,
        source_event_id=message.source_event_id,
        access_count=message.access_count,
        last_accessed_us=stored_time(message, "last_accessed_at", field),
        created_us=stored_time(message, "created_at", field) or 0,
        updated_us=stored_time(message, "updated_at", field) or 0,
        archived_us=stored_time(message, "archived_at", field),
    )


@reads("lesson")
def lesson(stored: Lesson) -> pb.Lesson:
    """Return the message of a lesson."""
    return pb.Lesson(
        id=stored.id,
        title=stored.title,
        content=stored.content,
        category=stored.category,
        importance=cast("common_pb2.Importance", stored.importance),
        agent_id=stored.agent_id,
        project=stored.project,
        tags=stored.tags,
        context=struct_of(stored.context_json),
        source_session_id=stored.source_session_id,
        source_event_id=stored.source_event_id,
        access_count=stored.access_count,
        last_accessed_at=(
            None if stored.last_accessed_us is None else to_timestamp(stored.last_accessed_us)
        ),
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
        archived_at=None if stored.archived_us is None else to_timestamp(stored.archived_us),
        etag=stored.etag,
    )


def found_lesson(found: FoundLesson) -> pb.FoundLesson:
    """Return the message of a lesson that was found."""
    return pb.FoundLesson(
        lesson=lesson(found.lesson), score=found.score, similarity=found.similarity
    )


def lesson_filter(message: pb.LessonFilter) -> LessonFilter:
    """Return the filter of a message."""
    return LessonFilter(
        agent_id=message.agent_id,
        category=message.category,
        importance=LessonImportance(message.importance) if message.importance else None,
        project=message.project,
        tags=tuple(message.tags),
        include_archived=message.include_archived,
    )


def lesson_changes(message: pb.Lesson, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        name, read = _CONVERTED.get(path, (path, attrgetter(path)))
        changes[name] = read(message)
    return changes


def changed_fields_only(given: pb.Lesson, named: Iterable[str]) -> pb.Lesson:
    """Return a lesson to validate: id, etag and the named fields as given, harmless others."""
    message = pb.Lesson(id=given.id, etag=given.etag, title="unchanged", content="unchanged")
    for path in named:
        message.ClearField(path)
        value = getattr(given, path)
        if path == "tags":
            message.tags.extend(value)
        elif path == "context":
            message.context.CopyFrom(value)
        else:
            setattr(message, path, value)
    return message


def new_reflection(request: reflection_pb.StoreReflectionRequest) -> Reflection:
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
def reflection(stored: Reflection) -> reflection_pb.Reflection:
    """Return the message of a reflection."""
    return reflection_pb.Reflection(
        id=stored.id,
        session_id=stored.session_id,
        project=stored.project,
        agent_id=stored.agent_id,
        task_description=stored.task_description,
        attempt_number=stored.attempt_number,
        outcome=cast("reflection_pb.Outcome", stored.outcome),
        what_worked=stored.what_worked,
        what_did_not_work=stored.what_did_not_work,
        next_strategy=stored.next_strategy,
        tags=stored.tags,
        related_entity_ids=stored.related_entity_ids,
        applied_reflection_ids=stored.applied_reflection_ids,
        created_at=to_timestamp(stored.created_us),
    )


def found_reflection(found: FoundReflection) -> reflection_pb.FoundReflection:
    """Return the message of a reflection that was found."""
    return reflection_pb.FoundReflection(
        reflection=reflection(found.reflection), score=found.score, similarity=found.similarity
    )


def reflection_filter(message: reflection_pb.ReflectionFilter) -> ReflectionFilter:
    """Return the filter of a message."""
    return ReflectionFilter(
        session_id=message.session_id,
        project=message.project,
        agent_id=message.agent_id,
        user_id=message.user_id,
        outcomes=frozenset(Outcome(outcome) for outcome in message.outcomes),
        tags=tuple(message.tags),
    )


def summary(made: ReflectionSummary) -> reflection_pb.SummarizeReflectionsResponse:
    """Return the message of a summary."""
    return reflection_pb.SummarizeReflectionsResponse(
        total_reflections=made.total,
        success_rate=made.success_rate,
        common_failures=[_theme(theme) for theme in made.common_failures],
        effective_strategies=[_theme(theme) for theme in made.effective_strategies],
        recent_lessons=fitting(map(reflection, made.recent), times=2),
        metrics=_metrics(made.metrics),
    )


def _theme(theme: Theme) -> reflection_pb.Theme:
    return reflection_pb.Theme(
        text=theme.text,
        count=theme.count,
        reflection_ids=theme.reflection_ids,
        variants=theme.variants,
    )


def _metrics(metrics: ReflectionMetrics) -> reflection_pb.ReflectionMetrics:
    return reflection_pb.ReflectionMetrics(
        store_count=metrics.store_count,
        search_count=metrics.search_count,
        hit_rate=metrics.hit_rate,
        outcome_improvement_rate=metrics.outcome_improvement_rate,
        cross_session_reuse=metrics.cross_session_reuse,
    )


def new_entry(request: knowledge_pb.LogKnowledgeRequest) -> KnowledgeEntry:
    """Return the entry that a request logs."""
    rate = request.success_rate if request.HasField("success_rate") else None
    return KnowledgeEntry(
        id=request.entry_id,
        project=request.project,
        agent_id=request.agent_id,
        type=KnowledgeType(request.type),
        context=request.context,
        command=request.command,
        lesson=request.lesson,
        success_rate=SuccessRate(rate.successes, rate.tries) if rate else None,
        tags=tuple(sorted(set(request.tags))),
        timestamp_us=stored_time(request, "timestamp") or 0,
    )


@reads("knowledge entry")
def entry(stored: KnowledgeEntry) -> knowledge_pb.KnowledgeEntry:
    """Return the message of an entry."""
    rate = stored.success_rate
    return knowledge_pb.KnowledgeEntry(
        id=stored.id,
        project=stored.project,
        agent_id=stored.agent_id,
        type=cast("knowledge_pb.KnowledgeType", stored.type),
        context=stored.context,
        command=stored.command,
        lesson=stored.lesson,
        success_rate=knowledge_pb.SuccessRate(successes=rate.successes, tries=rate.tries)
        if rate
        else None,
        tags=stored.tags,
        timestamp=to_timestamp(stored.timestamp_us),
    )


def knowledge_answer(answer: KnowledgeAnswer) -> knowledge_pb.QueryKnowledgeResponse:
    """Return the message of an answer."""
    return knowledge_pb.QueryKnowledgeResponse(
        entries=[_found(found) for found in answer.found],
        markdown=answer.markdown,
        token_count=answer.tokens,
        omitted_count=answer.omitted,
        words_only=answer.words_only,
    )


def _found(found: FoundKnowledge) -> knowledge_pb.FoundKnowledge:
    return knowledge_pb.FoundKnowledge(
        entry=entry(found.entry),
        score=found.score,
        similarity=found.similarity,
        success_lower_bound=found.success_lower_bound,
    )
