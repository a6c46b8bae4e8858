"""Between lessons as messages and lessons of the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import common_pb2
from mneme.v1 import learn_service_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, stored_time, struct_of, to_timestamp
from mneme_server.features.learn.lesson_model import (
    FoundLesson,
    Importance,
    Lesson,
    LessonFilter,
)


def new_lesson(request: pb.CreateLessonRequest) -> Lesson:
    """Return the lesson that a request saves."""
    return Lesson(
        id=request.lesson_id,
        title=request.title,
        content=request.content,
        category=request.category,
        importance=Importance(request.importance),
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
        importance=Importance(message.importance),
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
        importance=Importance(message.importance) if message.importance else None,
        project=message.project,
        tags=tuple(message.tags),
        include_archived=message.include_archived,
    )


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, tuple[str, Callable[[pb.Lesson], Any]]] = {
    "importance": ("importance", lambda message: Importance(message.importance)),
    "tags": ("tags", lambda message: tuple(sorted(set(message.tags)))),
    "context": (
        "context_json",
        lambda message: canonical_json(json_of(message, "context", "lesson")),
    ),
}


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
