"""LearnService."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import knowledge_pb2, reflection_pb2
from mneme.v1 import learn_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.learn.knowledge import Knowledge
from mneme_server.learn.knowledge_model import KnowledgeType
from mneme_server.learn.lesson_model import OnConflict
from mneme_server.learn.lessons import Lessons
from mneme_server.learn.messages import knowledge, reflections
from mneme_server.learn.messages import lessons as convert
from mneme_server.learn.reflection_model import ReflectionFilter, prompt_of
from mneme_server.learn.reflections import Reflections
from mneme_server.transport.call import Call
from mneme_server.transport.masks import named_fields
from mneme_server.transport.paging import Pages, fitting
from mneme_server.transport.validation import validate


class LearnServicer:
    """Serves `mneme.v1.LearnService`."""

    def __init__(self, lessons: Lessons, reflections: Reflections, knowledge: Knowledge) -> None:
        self._lessons = lessons
        self._reflections = reflections
        self._knowledge = knowledge

    def CreateLesson(self, request: pb.CreateLessonRequest, call: Call) -> pb.CreateLessonResponse:
        """Save a lesson."""
        saved = self._lessons.create(call.tenant, convert.new_lesson(request))
        return pb.CreateLessonResponse(lesson=convert.lesson(saved))

    def GetLesson(self, request: pb.GetLessonRequest, call: Call) -> pb.GetLessonResponse:
        """Return a lesson and count the access."""
        lesson = self._lessons.get(call.tenant, request.lesson_id)
        return pb.GetLessonResponse(lesson=convert.lesson(lesson))

    def ListLessons(self, request: pb.ListLessonsRequest, call: Call) -> pb.ListLessonsResponse:
        """List lessons."""
        pages = Pages(request)
        key = pages.after(int, str)
        lessons, total = self._lessons.page(
            call.tenant,
            convert.lesson_filter(request.filter),
            key,
            pages.size + 1,
        )
        page, token = pages.fit(lessons, convert.lesson, lambda last: (last.updated_us, last.id))
        return pb.ListLessonsResponse(lessons=page, next_page_token=token, total_size=total)

    def SearchLessons(
        self, request: pb.SearchLessonsRequest, call: Call
    ) -> pb.SearchLessonsResponse:
        """Search lessons and count the accesses."""
        found, answer = self._lessons.search(
            call.tenant,
            request.query,
            convert.lesson_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
        )
        return pb.SearchLessonsResponse(
            results=fitting(convert.found_lesson(lesson) for lesson in found),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def UpdateLesson(self, request: pb.UpdateLessonRequest, call: Call) -> pb.UpdateLessonResponse:
        """Change a lesson."""
        if not request.lesson.id:
            raise InvalidArgument(
                "lesson.id is required", reason=Reason.MISSING_REQUIRED_FIELD, field="lesson.id"
            )
        named = named_fields(request)
        validate(convert.changed_fields_only(request.lesson, named), prefix="lesson")
        changes = convert.lesson_changes(request.lesson, named)
        lesson = self._lessons.update(
            call.tenant, request.lesson.id, changes, etag=request.lesson.etag
        )
        return pb.UpdateLessonResponse(lesson=convert.lesson(lesson))

    def DeleteLesson(self, request: pb.DeleteLessonRequest, call: Call) -> pb.DeleteLessonResponse:
        """Archive a lesson."""
        lesson = self._lessons.archive(call.tenant, request.lesson_id, etag=request.etag)
        return pb.DeleteLessonResponse(lesson=convert.lesson(lesson))

    def UndeleteLesson(
        self, request: pb.UndeleteLessonRequest, call: Call
    ) -> pb.UndeleteLessonResponse:
        """Bring an archived lesson back."""
        lesson = self._lessons.restore(call.tenant, request.lesson_id, etag=request.etag)
        return pb.UndeleteLessonResponse(lesson=convert.lesson(lesson))

    def ImportLessons(
        self, request: pb.ImportLessonsRequest, call: Call
    ) -> pb.ImportLessonsResponse:
        """Bring in lessons."""
        report = self._lessons.import_(
            call.tenant,
            [
                convert.imported_lesson(lesson, f"lessons[{i}]")
                for i, lesson in enumerate(request.lessons)
            ],
            OnConflict(request.on_conflict),
        )
        return pb.ImportLessonsResponse(
            created_count=report.created,
            replaced_count=report.replaced,
            unchanged_count=report.unchanged,
            skipped_count=report.skipped,
            lesson_ids=report.lesson_ids,
        )

    def ExportLessons(
        self, request: pb.ExportLessonsRequest, call: Call
    ) -> Iterator[pb.ExportLessonsResponse]:
        """Stream lessons."""
        exported = self._lessons.export(call.tenant, convert.lesson_filter(request.filter))
        for lesson in exported:
            yield pb.ExportLessonsResponse(lesson=convert.lesson(lesson))

    def StoreReflection(
        self, request: reflection_pb2.StoreReflectionRequest, call: Call
    ) -> reflection_pb2.StoreReflectionResponse:
        """Store a reflection."""
        stored, pruned = self._reflections.store(call.tenant, reflections.new_reflection(request))
        return reflection_pb2.StoreReflectionResponse(
            reflection=reflections.reflection(stored), pruned_count=pruned
        )

    def ListReflections(
        self, request: reflection_pb2.ListReflectionsRequest, call: Call
    ) -> reflection_pb2.ListReflectionsResponse:
        """List reflections."""
        pages = Pages(request)
        found, total = self._reflections.page(
            call.tenant,
            reflections.reflection_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.cut(found, lambda last: (last.created_us, last.id))
        return reflection_pb2.ListReflectionsResponse(
            reflections=[reflections.reflection(one) for one in page],
            next_page_token=token,
            total_size=total,
            prompt=prompt_of(page),
        )

    def SearchReflections(
        self, request: reflection_pb2.SearchReflectionsRequest, call: Call
    ) -> reflection_pb2.SearchReflectionsResponse:
        """Search reflections that bear on a task."""
        found, answer = self._reflections.search(
            call.tenant,
            request.task_description,
            reflections.reflection_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
        )
        return reflection_pb2.SearchReflectionsResponse(
            results=[reflections.found_reflection(one) for one in found],
            prompt=prompt_of([one.reflection for one in found]),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def SummarizeReflections(
        self, request: reflection_pb2.SummarizeReflectionsRequest, call: Call
    ) -> reflection_pb2.SummarizeReflectionsResponse:
        """Summarize reflections."""
        made = self._reflections.summarize(
            call.tenant,
            ReflectionFilter(project=request.project, session_id=request.session_id),
            request.limit,
        )
        return reflections.summary(made)

    def LogKnowledge(
        self, request: knowledge_pb2.LogKnowledgeRequest, call: Call
    ) -> knowledge_pb2.LogKnowledgeResponse:
        """Log one line of experience."""
        entry, duplicate = self._knowledge.log(call.tenant, knowledge.new_entry(request))
        return knowledge_pb2.LogKnowledgeResponse(entry=knowledge.entry(entry), duplicate=duplicate)

    def QueryKnowledge(
        self, request: knowledge_pb2.QueryKnowledgeRequest, call: Call
    ) -> knowledge_pb2.QueryKnowledgeResponse:
        """Answer with the experience that bears on a query."""
        answer = self._knowledge.query(
            call.tenant,
            request.query,
            project=request.project,
            type_=KnowledgeType(request.type) if request.type else None,
            tags=frozenset(request.tags),
            limit=request.limit,
            token_budget=request.token_budget,
        )
        return knowledge.knowledge_answer(answer)
