"""LearnService."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from mneme.v1 import learn_service_pb2 as pb
from mneme.v1 import learn_service_pb2_grpc as pb_grpc

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.learn.lessons import Lessons
from mneme_server.learn.model import OnConflict
from mneme_server.transport.call import current_caller
from mneme_server.transport.convert import lessons as convert
from mneme_server.transport.paging import Pages, fitting
from mneme_server.transport.validation import validate

_DEFAULT_LIMIT = 10


class LearnServicer(pb_grpc.LearnServiceServicer):
    """Serves `mneme.v1.LearnService`."""

    def __init__(self, lessons: Lessons) -> None:
        self._lessons = lessons

    def CreateLesson(
        self, request: pb.CreateLessonRequest, context: grpc.ServicerContext
    ) -> pb.CreateLessonResponse:
        """Save a lesson."""
        saved = self._lessons.create(current_caller().tenant_id, convert.new_lesson(request))
        return pb.CreateLessonResponse(lesson=convert.lesson(saved))

    def GetLesson(
        self, request: pb.GetLessonRequest, context: grpc.ServicerContext
    ) -> pb.GetLessonResponse:
        """Return a lesson and count the access."""
        lesson = self._lessons.get(current_caller().tenant_id, request.lesson_id)
        return pb.GetLessonResponse(lesson=convert.lesson(lesson))

    def ListLessons(
        self, request: pb.ListLessonsRequest, context: grpc.ServicerContext
    ) -> pb.ListLessonsResponse:
        """List lessons."""
        pages = Pages(request, default_size=50)
        key = pages.after(int, str)
        lessons, total = self._lessons.page(
            current_caller().tenant_id,
            convert.lesson_filter(request.filter),
            key,
            pages.size + 1,
        )
        page, token = pages.fit(lessons, convert.lesson, lambda last: (last.updated_us, last.id))
        return pb.ListLessonsResponse(lessons=page, next_page_token=token, total_size=total)

    def SearchLessons(
        self, request: pb.SearchLessonsRequest, context: grpc.ServicerContext
    ) -> pb.SearchLessonsResponse:
        """Search lessons and count the accesses."""
        found, searched = self._lessons.search(
            current_caller().tenant_id,
            request.query,
            convert.lesson_filter(request.filter),
            limit=request.limit or _DEFAULT_LIMIT,
            min_score=request.min_score,
        )
        return pb.SearchLessonsResponse(
            results=fitting(convert.found_lesson(lesson) for lesson in found),
            searched_count=searched,
        )

    def UpdateLesson(
        self, request: pb.UpdateLessonRequest, context: grpc.ServicerContext
    ) -> pb.UpdateLessonResponse:
        """Change a lesson."""
        if not request.lesson.id:
            raise InvalidArgument(
                "lesson.id is required", reason=Reason.MISSING_REQUIRED_FIELD, field="lesson.id"
            )
        convert.check_mask(request)
        validate(convert.changed_fields_only(request), prefix="lesson")
        changes = convert.lesson_changes(request)
        lesson = self._lessons.update(current_caller().tenant_id, request.lesson.id, changes)
        return pb.UpdateLessonResponse(lesson=convert.lesson(lesson))

    def DeleteLesson(
        self, request: pb.DeleteLessonRequest, context: grpc.ServicerContext
    ) -> pb.DeleteLessonResponse:
        """Archive a lesson."""
        lesson = self._lessons.archive(current_caller().tenant_id, request.lesson_id)
        return pb.DeleteLessonResponse(lesson=convert.lesson(lesson))

    def ImportLessons(
        self, request: pb.ImportLessonsRequest, context: grpc.ServicerContext
    ) -> pb.ImportLessonsResponse:
        """Bring in lessons."""
        report = self._lessons.import_(
            current_caller().tenant_id,
            [
                convert.imported_lesson(lesson, f"lessons[{i}]")
                for i, lesson in enumerate(request.lessons)
            ],
            OnConflict(request.on_conflict or OnConflict.FAIL),
        )
        return pb.ImportLessonsResponse(
            created_count=report.created,
            replaced_count=report.replaced,
            unchanged_count=report.unchanged,
            skipped_count=report.skipped,
            lesson_ids=report.lesson_ids,
        )

    def ExportLessons(
        self, request: pb.ExportLessonsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ExportLessonsResponse]:
        """Stream lessons."""
        exported = self._lessons.export(
            current_caller().tenant_id, convert.lesson_filter(request.filter)
        )
        for lesson in exported:
            yield pb.ExportLessonsResponse(lesson=convert.lesson(lesson))
