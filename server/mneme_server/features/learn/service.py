"""LearnService."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as pb
from mneme.v1 import reflection_pb2 as reflection_pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages, fitting
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.engine.corpus.imports import OnConflict
from mneme_server.features.learn import messages as convert
from mneme_server.features.learn.knowledge import Knowledge
from mneme_server.features.learn.lessons import Lessons
from mneme_server.features.learn.model import ReflectionFilter, prompt_of
from mneme_server.features.learn.reflections import Reflections

_SAID = 2
"""How often an answer says what its reflections do: as messages, and as text for a prompt."""


class LessonCalls:
    """Serves what `mneme.v1.LearnService` says of lessons."""

    _lessons: Lessons

    def CreateLesson(self, request: pb.CreateLessonRequest, call: Call) -> pb.CreateLessonResponse:
        """Save a lesson."""
        with fields(id="lesson_id"):
            saved = self._lessons.create(call.tenant, convert.new_lesson(request))
        return pb.CreateLessonResponse(lesson=convert.lesson(saved))

    def GetLesson(self, request: pb.GetLessonRequest, call: Call) -> pb.GetLessonResponse:
        """Return a lesson and count the access, unless it is a peek."""
        with fields(id="lesson_id"):
            lesson = self._lessons.get(call.tenant, request.lesson_id, counted=not request.peek)
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
            request.words,
        )
        page, token = pages.fit(lessons, convert.lesson, lambda last: (last.updated_us, last.id))
        return pb.ListLessonsResponse(lessons=page, next_page_token=token, total_size=total)

    def SearchLessons(
        self, request: pb.SearchLessonsRequest, call: Call
    ) -> pb.SearchLessonsResponse:
        """Search lessons and count the accesses, unless it is a peek."""
        found, answer = self._lessons.search(
            call.tenant,
            request.query,
            convert.lesson_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
            counted=not request.peek,
        )
        return pb.SearchLessonsResponse(
            results=fitting(convert.found_lesson(lesson) for lesson in found),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def UpdateLesson(self, request: pb.UpdateLessonRequest, call: Call) -> pb.UpdateLessonResponse:
        """Change a lesson."""
        changes = changes_of(request, "lesson", convert.read_lesson, title="-", content="-")
        with fields(id="lesson.id"):
            lesson = self._lessons.update(
                call.tenant, request.lesson.id, changes, etag=request.lesson.etag
            )
        return pb.UpdateLessonResponse(lesson=convert.lesson(lesson))

    def ArchiveLesson(
        self, request: pb.ArchiveLessonRequest, call: Call
    ) -> pb.ArchiveLessonResponse:
        """Archive a lesson."""
        with fields(id="lesson_id"):
            lesson = self._lessons.archive(call.tenant, request.lesson_id, etag=request.etag)
        return pb.ArchiveLessonResponse(lesson=convert.lesson(lesson))

    def UnarchiveLesson(
        self, request: pb.UnarchiveLessonRequest, call: Call
    ) -> pb.UnarchiveLessonResponse:
        """Bring an archived lesson back."""
        with fields(id="lesson_id"):
            lesson = self._lessons.restore(call.tenant, request.lesson_id, etag=request.etag)
        return pb.UnarchiveLessonResponse(lesson=convert.lesson(lesson))

    def DeleteLesson(self, request: pb.DeleteLessonRequest, call: Call) -> pb.DeleteLessonResponse:
        """Delete a lesson for good."""
        with fields(id="lesson_id"):
            lesson = self._lessons.delete(call.tenant, request.lesson_id, etag=request.etag)
        return pb.DeleteLessonResponse(lesson=convert.lesson(lesson))

    def ImportLessons(
        self, request: pb.ImportLessonsRequest, call: Call
    ) -> pb.ImportLessonsResponse:
        """Bring in lessons."""
        with fields(id="lessons[{item}].id"):
            report = self._lessons.import_(
                call.tenant,
                [
                    convert.read_lesson(lesson, f"lessons[{i}]")
                    for i, lesson in enumerate(request.lessons)
                ],
                OnConflict(request.on_conflict),
            )
        return pb.ImportLessonsResponse(
            created_count=report.created,
            replaced_count=report.replaced,
            unchanged_count=report.unchanged,
            skipped_count=report.skipped,
            lesson_ids=report.ids,
        )

    def ExportLessons(
        self, request: pb.ExportLessonsRequest, call: Call
    ) -> Iterator[pb.ExportLessonsResponse]:
        """Stream lessons."""
        exported = self._lessons.export(call.tenant, convert.lesson_filter(request.filter))
        for lesson in exported:
            yield pb.ExportLessonsResponse(lesson=convert.lesson(lesson))


class ReflectionCalls:
    """Serves what `mneme.v1.LearnService` says of reflections."""

    _reflections: Reflections

    def CreateReflection(
        self, request: reflection_pb.CreateReflectionRequest, call: Call
    ) -> reflection_pb.CreateReflectionResponse:
        """Store a reflection."""
        with fields(id="reflection_id"):
            stored, pruned = self._reflections.store(call.tenant, convert.new_reflection(request))
        return reflection_pb.CreateReflectionResponse(
            reflection=convert.reflection(stored), pruned_count=pruned
        )

    def GetReflection(
        self, request: reflection_pb.GetReflectionRequest, call: Call
    ) -> reflection_pb.GetReflectionResponse:
        """Return a reflection."""
        with fields(id="reflection_id"):
            found = self._reflections.get(call.tenant, request.reflection_id)
        return reflection_pb.GetReflectionResponse(reflection=convert.reflection(found))

    def UpdateReflection(
        self, request: reflection_pb.UpdateReflectionRequest, call: Call
    ) -> reflection_pb.UpdateReflectionResponse:
        """Change a reflection."""
        given = request.reflection
        changes = changes_of(
            request,
            "reflection",
            convert.read_reflection,
            session_id="-",
            task_description="-",
            outcome=reflection_pb.OUTCOME_SUCCESS,
        )
        with fields(id="reflection.id"):
            changed = self._reflections.update(call.tenant, given.id, changes, etag=given.etag)
        return reflection_pb.UpdateReflectionResponse(reflection=convert.reflection(changed))

    def DeleteReflection(
        self, request: reflection_pb.DeleteReflectionRequest, call: Call
    ) -> reflection_pb.DeleteReflectionResponse:
        """Delete a reflection."""
        with fields(id="reflection_id"):
            gone = self._reflections.delete(call.tenant, request.reflection_id, etag=request.etag)
        return reflection_pb.DeleteReflectionResponse(reflection=convert.reflection(gone))

    def ListReflections(
        self, request: reflection_pb.ListReflectionsRequest, call: Call
    ) -> reflection_pb.ListReflectionsResponse:
        """List reflections."""
        pages = Pages(request)
        found, total = self._reflections.page(
            call.tenant,
            convert.reflection_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(
            found,
            convert.reflection,
            lambda last: (last.created_us, last.id),
            times=_SAID,
        )
        return reflection_pb.ListReflectionsResponse(
            reflections=page,
            next_page_token=token,
            total_size=total,
            text=prompt_of(found[: len(page)]),
        )

    def SearchReflections(
        self, request: reflection_pb.SearchReflectionsRequest, call: Call
    ) -> reflection_pb.SearchReflectionsResponse:
        """Search reflections that bear on a task."""
        found, answer = self._reflections.search(
            call.tenant,
            request.task_description,
            convert.reflection_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
            counted=not request.peek,
        )
        results = fitting(map(convert.found_reflection, found), times=_SAID)
        return reflection_pb.SearchReflectionsResponse(
            results=results,
            text=prompt_of([one.reflection for one in found[: len(results)]]),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def SummarizeReflections(
        self, request: reflection_pb.SummarizeReflectionsRequest, call: Call
    ) -> reflection_pb.SummarizeReflectionsResponse:
        """Summarize reflections."""
        made = self._reflections.summarize(
            call.tenant,
            ReflectionFilter(
                project=request.project, session_id=request.session_id, user_id=request.user_id
            ),
            request.limit,
        )
        return convert.summary(made)


class KnowledgeCalls:
    """Serves what `mneme.v1.LearnService` says of the knowledge log."""

    _knowledge: Knowledge

    def CreateKnowledge(
        self, request: knowledge_pb.CreateKnowledgeRequest, call: Call
    ) -> knowledge_pb.CreateKnowledgeResponse:
        """Log one line of experience."""
        with fields(id="entry_id"):
            entry, duplicate = self._knowledge.log(call.tenant, convert.new_entry(request))
        return knowledge_pb.CreateKnowledgeResponse(entry=convert.entry(entry), duplicate=duplicate)

    def GetKnowledge(
        self, request: knowledge_pb.GetKnowledgeRequest, call: Call
    ) -> knowledge_pb.GetKnowledgeResponse:
        """Return an entry."""
        with fields(id="entry_id"):
            found = self._knowledge.get(call.tenant, request.entry_id)
        return knowledge_pb.GetKnowledgeResponse(entry=convert.entry(found))

    def ListKnowledge(
        self, request: knowledge_pb.ListKnowledgeRequest, call: Call
    ) -> knowledge_pb.ListKnowledgeResponse:
        """List entries."""
        pages = Pages(request)
        found, total = self._knowledge.page(
            call.tenant,
            convert.knowledge_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(found, convert.entry, lambda last: (last.timestamp_us, last.id))
        return knowledge_pb.ListKnowledgeResponse(
            entries=page, next_page_token=token, total_size=total
        )

    def UpdateKnowledge(
        self, request: knowledge_pb.UpdateKnowledgeRequest, call: Call
    ) -> knowledge_pb.UpdateKnowledgeResponse:
        """Change an entry."""
        given = request.entry
        changes = changes_of(
            request,
            "entry",
            convert.read_entry,
            project="-",
            type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
            context="-",
            lesson="-",
        )
        with fields(id="entry.id"):
            changed = self._knowledge.update(call.tenant, given.id, changes, etag=given.etag)
        return knowledge_pb.UpdateKnowledgeResponse(entry=convert.entry(changed))

    def DeleteKnowledge(
        self, request: knowledge_pb.DeleteKnowledgeRequest, call: Call
    ) -> knowledge_pb.DeleteKnowledgeResponse:
        """Delete an entry."""
        with fields(id="entry_id"):
            gone = self._knowledge.delete(call.tenant, request.entry_id, etag=request.etag)
        return knowledge_pb.DeleteKnowledgeResponse(entry=convert.entry(gone))

    def SearchKnowledge(
        self, request: knowledge_pb.SearchKnowledgeRequest, call: Call
    ) -> knowledge_pb.SearchKnowledgeResponse:
        """Answer with the experience that bears on a query."""
        answer = self._knowledge.query(
            call.tenant,
            request.query,
            convert.knowledge_filter(request.filter),
            limit=request.limit,
            token_budget=request.token_budget,
        )
        return convert.knowledge_answer(answer)


class LearnServicer(LessonCalls, ReflectionCalls, KnowledgeCalls):
    """Serves `mneme.v1.LearnService`: lessons, reflections, the knowledge log."""

    def __init__(
        self,
        lessons: Lessons,
        reflections: Reflections,
        knowledge: Knowledge,
    ) -> None:
        self._lessons = lessons
        self._reflections = reflections
        self._knowledge = knowledge
