"""Lessons: saved with their embedding, so that the next search finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import deadline, turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import FailedPrecondition
from mneme_server.common.etags import existing
from mneme_server.common.identity import new_id
from mneme_server.common.pages import least_bytes
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.imports import Import, ImportReport, OnConflict, exported, import_of
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.revision import revised
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.model import (
    LESSON,
    FoundLesson,
    Lesson,
    LessonFilter,
    folded,
)
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall


@dataclass(frozen=True, slots=True)
class Lessons:
    """The use cases of lessons."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall
    usage: Usage

    def create(self, tenant_id: str, lesson: Lesson) -> Lesson:
        """Save the lesson; an empty id is made. The same content again changes nothing.

        Raises:
            AlreadyExists: the id is taken by a lesson with other content.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is saved.
        """
        saved = self._save(tenant_id, [lesson], OnConflict.FAIL)
        return self.usage.shown(tenant_id, saved.stored[saved.report.ids[0]])

    def get(self, tenant_id: str, lesson_id: str, *, counted: bool = True) -> Lesson:
        """Return the lesson, and count the access if it is to be `counted`.

        Raises:
            NotFound: there is no such lesson.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            lesson = _existing(unit, lesson_id)
        if counted:
            self.usage.lessons_read(tenant_id, [lesson_id])
        return self.usage.shown(tenant_id, lesson)

    def page(
        self,
        tenant_id: str,
        filter_: LessonFilter,
        after: tuple[int, str] | None,
        limit: int,
        words: str = "",
    ) -> tuple[Sequence[Lesson], int]:
        """Return lessons, latest update first, after (updated_us, id); and how many match.

        With `words`, only those that hold each of them in their title or content.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            read, total = self._reading(unit, filter_, folded(words).split())
            page = turns.read_page(
                read,
                after,
                limit,
                lambda one: (one.updated_us, one.id),
                lambda one: least_bytes(len(one.content), len(one.context_json)),
            )
        return [self.usage.shown(tenant_id, lesson) for lesson in page], total

    def _reading(
        self, unit: CorpusUnit, filter_: LessonFilter, words: Sequence[str]
    ) -> tuple[Callable[[tuple[int, str] | None, int], Sequence[Lesson]], int]:
        """Return what reads lessons after a key, and how many there are.

        For words all are looked through here: databases tell upper from lower case in English
        alone, or not at all.
        """
        lessons = unit.get(SqlLessons)
        if not words:
            return partial(lessons.page, filter_), lessons.count(filter_)
        matching: list[tuple[int, str]] = []
        for some in lessons.texts(filter_):
            deadline.check()
            with turns.piece():
                matching += [(one.updated_us, one.id) for one in some if one.holds(words)]
        matching.sort(reverse=True)
        return partial(_of, unit, matching), len(matching)

    def search(
        self,
        tenant_id: str,
        query: str,
        filter_: LessonFilter,
        *,
        limit: int,
        min_score: float,
        counted: bool = True,
    ) -> tuple[Sequence[FoundLesson], RecallAnswer]:
        """Return the lessons that fit best, and what recall said; count the accesses if they are to
        be `counted`."""
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=query, filter=_document_filter(filter_), limit=limit, min_score=min_score
            ),
        )
        ids = [result.document.source_id for result in answer.results]
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            lessons = unit.get(SqlLessons).get_many(ids)
        if counted:
            self.usage.lessons_read(tenant_id, lessons)
        found = [
            FoundLesson(
                self.usage.shown(tenant_id, lessons[result.document.source_id]),
                result.score,
                result.similarity,
            )
            for result in answer.results
            if result.document.source_id in lessons
        ]
        return found, answer

    def update(
        self, tenant_id: str, lesson_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Lesson:
        """Change the given fields, of those in `model.CONTENT_FIELDS`.

        What others change meanwhile is kept; with an `etag` it is the reason to refuse.

        Raises:
            NotFound: there is no such lesson.
            Aborted: `etag` is given and is not the lesson's any more.
            FailedPrecondition: it is archived.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant:
            after = revised(
                tenant,
                self.embedder,
                read=lambda unit: _existing(unit, lesson_id, etag),
                change=lambda before: _changed(before, changes),
                texts=lambda after: [after.text],
                save=_rewrite,
            )
        return self.usage.shown(tenant_id, after)

    def archive(self, tenant_id: str, lesson_id: str, *, etag: str = "") -> Lesson:
        """Archive the lesson; doing so again changes nothing.

        Raises:
            NotFound: there is no such lesson.
            Aborted: `etag` is given and is not the lesson's any more.
        """
        return self._set_archived(tenant_id, lesson_id, now_us(), etag)

    def restore(self, tenant_id: str, lesson_id: str, *, etag: str = "") -> Lesson:
        """Bring an archived lesson back; one that is not archived stays as it is.

        Raises:
            NotFound: there is no such lesson.
            Aborted: `etag` is given and is not the lesson's any more.
        """
        return self._set_archived(tenant_id, lesson_id, None, etag)

    def delete(self, tenant_id: str, lesson_id: str, *, etag: str = "") -> Lesson:
        """Delete the lesson with its accesses, and return it as it was.

        Raises:
            NotFound: there is no such lesson.
            Aborted: `etag` is given and is not the lesson's any more.
        """
        with self.tenants.open(tenant_id) as tenant:
            self.usage.write(tenant)  # Else they would be counted of a later one of that id.
            with tenant.write() as unit:
                lesson = _existing(unit, lesson_id, etag)
                unit.get(SqlLessons).remove(lesson)
                unit.documents.remove(LESSON, [lesson_id])
        return lesson

    def _set_archived(
        self, tenant_id: str, lesson_id: str, archived_us: int | None, etag: str
    ) -> Lesson:
        """Save since when the lesson is archived, unless it already is what is wanted.

        Its document keeps its vector: nothing is embedded.
        """
        archived = archived_us is not None
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            lesson = _existing(unit, lesson_id, etag)
            if archived != (lesson.archived_us is not None):
                lesson = replace(lesson, archived_us=archived_us)
                unit.get(SqlLessons).save([lesson])
                unit.documents.set_archived(LESSON, lesson_id, archived=archived)
        return self.usage.shown(tenant_id, lesson)

    def import_(
        self, tenant_id: str, lessons: Sequence[Lesson], on_conflict: OnConflict
    ) -> ImportReport:
        """Bring in lessons, all or none.

        Raises:
            AlreadyExists: an id is taken by other content, and `on_conflict` is FAIL.
            ResourceExhausted: they cannot be embedded soon, and too much waits; nothing is brought
                in.
            FailedPrecondition: the same, and they are more than the queue holds.
        """
        return self._save(tenant_id, lessons, on_conflict).report

    def export(self, tenant_id: str, filter_: LessonFilter) -> Iterator[Lesson]:
        """Yield lessons by id."""
        with self.tenants.open(tenant_id) as tenant:
            for lesson in exported(
                tenant,
                lambda unit, after, limit: unit.get(SqlLessons).by_id(filter_, after, limit),
            ):
                yield self.usage.shown(tenant_id, lesson)

    def _save(
        self, tenant_id: str, lessons: Sequence[Lesson], on_conflict: OnConflict
    ) -> Import[Lesson]:
        now = now_us()
        given = [_completed(lesson, now) for lesson in lessons]
        vectors = self.embedder.embed([lesson.text for lesson in given])
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            deadline.check()  # It may have waited for the tenant's other writes.
            if vectors is None:
                tenant.require_room(len(given))
            stored = unit.get(SqlLessons).get_many([lesson.id for lesson in given])
            done = import_of(given, stored, Lesson.same_content, on_conflict, "lesson")
            if done.rows:
                unit.get(SqlLessons).save([given[row] for row in done.rows])
                unit.documents.remove(LESSON, list(done.replaced))
                unit.documents.add(
                    _documents(unit, [given[row] for row in done.rows]),
                    None if vectors is None else vectors[done.rows],
                )
        return done


def _completed(lesson: Lesson, now: int) -> Lesson:
    created = lesson.created_us or now
    return replace(
        lesson,
        id=lesson.id or new_id(),
        tags=tuple(sorted(set(lesson.tags))),
        created_us=created,
        updated_us=lesson.updated_us or created,
    )


def _existing(unit: CorpusUnit, lesson_id: str, etag: str = "") -> Lesson:
    """Return the lesson, which must still have this etag, if one is given."""
    found = unit.get(SqlLessons).get_many([lesson_id])
    return existing("lesson", found.get(lesson_id), lesson_id, etag)


def _changed(before: Lesson, changes: Mapping[str, Any]) -> Lesson:
    if before.archived_us is not None:
        raise FailedPrecondition(f"lesson {before.id!r} is archived", field="id")
    after = replace(before, **changes)
    if after.same_content(before):
        return before
    return replace(after, updated_us=later_us(before.updated_us))


def _rewrite(unit: CorpusUnit, after: Lesson, now: Lesson, vectors: Matrix | None) -> Lesson:
    after = replace(after, access_count=now.access_count, last_accessed_us=now.last_accessed_us)
    unit.get(SqlLessons).save([after])
    unit.documents.remove(LESSON, [after.id])
    unit.documents.add(_documents(unit, [after]), vectors)
    return after


def _documents(unit: CorpusUnit, lessons: Sequence[Lesson]) -> list[Document]:
    """Return what lessons are found by. Each is of the user whose session taught it."""
    taught = {lesson.source_session_id for lesson in lessons} - {""}
    sessions = unit.get(SqlSessions).get_many(taught)
    users = {key: session.user_id for key, session in sessions.items()}
    return [_document(lesson, users.get(lesson.source_session_id, "")) for lesson in lessons]


def _document(lesson: Lesson, user_id: str) -> Document:
    return Document(
        doc_id=0,
        kind=LESSON,
        source_id=lesson.id,
        text=lesson.text,
        timestamp_us=lesson.updated_us,
        agent_id=lesson.agent_id,
        user_id=user_id,
        project=lesson.project,
        category=lesson.category,
        importance=int(lesson.importance),
        archived=lesson.archived_us is not None,
        tags=lesson.tags,
    )


def _of(
    unit: CorpusUnit, keys: Sequence[tuple[int, str]], after: tuple[int, str] | None, limit: int
) -> Sequence[Lesson]:
    """Return the lessons of the keys that come after one, in their order."""
    some = [key for key in keys if after is None or key < after][:limit]
    lessons = unit.get(SqlLessons).get_many([lesson_id for _, lesson_id in some])
    return [lessons[lesson_id] for _, lesson_id in some]


def _document_filter(filter_: LessonFilter) -> DocumentFilter:
    return DocumentFilter(
        kinds=frozenset({LESSON}),
        agent_id=filter_.agent_id,
        project=filter_.project,
        categories=frozenset({filter_.category} if filter_.category else ()),
        importance=int(filter_.importance or 0),
        tags=frozenset(filter_.tags),
        include_archived=filter_.include_archived,
    )
