"""Translation between the messages of LearnService and the domain: of lessons, reflections and the
knowledge log."""

from __future__ import annotations

from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as pb
from mneme.v1 import reflection_pb2 as reflection_pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.paging import fitting
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.learn.model import (
    FoundKnowledge,
    FoundLesson,
    FoundReflection,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeFilter,
    Lesson,
    LessonFilter,
    Reflection,
    ReflectionFilter,
    ReflectionSummary,
)

new_lesson = MessageReader(
    pb.CreateLessonRequest, Lesson, spelled={"id": "lesson_id"}, sets=["tags"]
)
"""Return the lesson that a request saves."""
read_lesson = MessageReader(pb.Lesson, Lesson, sets=["tags"], unread=["etag"])
"""Return the lesson of a message as it was exported; its etag follows from the rest of it."""
lesson = reads("lesson")(message_writer(Lesson, pb.Lesson))
"""Return the message of a lesson."""
found_lesson = message_writer(FoundLesson, pb.FoundLesson, parts={"lesson": lesson})
"""Return the message of a lesson that was found."""
lesson_filter = MessageReader(pb.LessonFilter, LessonFilter)
"""Return the filter of a message."""
new_reflection = MessageReader(
    reflection_pb.CreateReflectionRequest,
    Reflection,
    spelled={"id": "reflection_id"},
    sets=["tags"],
)
"""Return the reflection that a request stores."""
read_reflection = MessageReader(
    reflection_pb.Reflection, Reflection, sets=["tags"], unread=["etag"]
)
"""Return the reflection of a message; its etag follows from the rest of it."""
reflection = reads("reflection")(message_writer(Reflection, reflection_pb.Reflection))
"""Return the message of a reflection."""
found_reflection = message_writer(
    FoundReflection,
    reflection_pb.FoundReflection,
    parts={"reflection": reflection},
)
"""Return the message of a reflection that was found."""
reflection_filter = MessageReader(reflection_pb.ReflectionFilter, ReflectionFilter)
"""Return the filter of a message."""
new_entry = MessageReader(
    knowledge_pb.CreateKnowledgeRequest, KnowledgeEntry, spelled={"id": "entry_id"}, sets=["tags"]
)
"""Return the entry that a request logs."""
read_entry = MessageReader(
    knowledge_pb.KnowledgeEntry, KnowledgeEntry, sets=["tags"], unread=["etag"]
)
"""Return the entry of a message; its etag follows from the rest of it."""
knowledge_filter = MessageReader(knowledge_pb.KnowledgeFilter, KnowledgeFilter)
"""Return the filter of a message."""
entry = reads("knowledge entry")(message_writer(KnowledgeEntry, knowledge_pb.KnowledgeEntry))
"""Return the message of an entry."""


summary = message_writer(
    ReflectionSummary,
    reflection_pb.SummarizeReflectionsResponse,
    spelled={"total": "total_reflections"},
    made={"recent_lessons": lambda made: fitting(map(reflection, made.recent), times=2)},
    unshown=["recent"],
)
"""Return the message of a summary."""
knowledge_answer = message_writer(
    KnowledgeAnswer,
    knowledge_pb.SearchKnowledgeResponse,
    spelled={"found": "entries", "tokens": "token_count", "omitted": "omitted_count"},
    parts={
        "entries": message_writer(
            FoundKnowledge, knowledge_pb.FoundKnowledge, parts={"entry": entry}
        )
    },
)
"""Return the message of an answer."""
