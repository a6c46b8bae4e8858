"""Lessons in a tenant's database."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Update,
    bindparam,
    delete,
    func,
    select,
    update,
)

from mneme_server.common.canonical import JsonObject
from mneme_server.common.counting import MAX_COUNT, counted
from mneme_server.common.stored import reads
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import greatest, insert, least
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    delete_among,
    equal_where_given,
    latest_after,
    read_with,
    rows_among,
    upsert,
)
from mneme_server.engine.store.totals import add_to_total, total
from mneme_server.features.learn.model import (
    Access,
    Lesson,
    LessonFilter,
    LessonImportance,
    LessonText,
)
from mneme_server.features.learn.store.tables import lesson_tags, lessons

_TEXTS = 500
"""Lessons whose texts are read at a time."""


class SqlLessons:
    """The tenant's lessons."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "lessons")

    def get_many(self, lesson_ids: Collection[str]) -> dict[str, Lesson]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, lessons, _lesson, self._tenant_id, lesson_ids, kind="lesson"
        )
        return {lesson.id: lesson for lesson in found}

    def save(self, saved: Collection[Lesson]) -> None:
        """Insert or replace these lessons."""
        rows = [_lesson_row(lesson, self._tenant_id) for lesson in saved]
        before = self._archived(lesson.id for lesson in saved)
        self._connection.execute(upsert(lessons), rows)
        after = {lesson.id: lesson.archived_us is not None for lesson in saved}
        for name, archived in (("lessons", False), ("lessons_archived", True)):
            more = operator.countOf(after.values(), archived)
            fewer = operator.countOf(before.values(), archived)
            add_to_total(self._connection, self._tenant_id, name, more - fewer)
        self._save_tags(saved)

    def remove(self, lesson: Lesson) -> None:
        """Remove a lesson that there is, with its tags."""
        self._connection.execute(
            delete(lessons).where(lessons.c.tenant_id == self._tenant_id, lessons.c.id == lesson.id)
        )
        name = "lessons" if lesson.archived_us is None else "lessons_archived"
        add_to_total(self._connection, self._tenant_id, name, -1)

    def _archived(self, lesson_ids: Iterable[str]) -> dict[str, bool]:
        """Return which of these lessons there are, and whether they are archived."""
        query, wanted = select(lessons.c.id, lessons.c.archived_at), set(lesson_ids)
        rows = rows_among(self._connection, self._tenant_id, query, lessons.c.id, wanted)
        return {row.id: row.archived_at is not None for row in rows}

    def count_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Add to the accesses of lessons, by id; unknown ones are ignored."""
        if accesses:
            rows = [
                {"mine": self._tenant_id, "which": id_, "times": one.times, "last": one.last_us}
                for id_, one in accesses.items()
            ]
            self._connection.execute(_count_accesses(), rows)

    def page(
        self, filter_: LessonFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Lesson]:
        """Return lessons, latest update first, that come after the key (updated_us, id)."""
        query = self._filtered(select(lessons), filter_)
        query = latest_after(query, lessons.c.updated_at, lessons.c.id, after, limit)
        return read_rows(self._connection, query, _lesson, kind="lesson")

    def by_id(self, filter_: LessonFilter, after: str, limit: int) -> Sequence[Lesson]:
        """Return lessons by id, after that id."""
        query = self._filtered(select(lessons), filter_).where(lessons.c.id > after)
        query = query.order_by(lessons.c.id).limit(limit)
        return read_rows(self._connection, query, _lesson, kind="lesson")

    def texts(self, filter_: LessonFilter) -> Iterator[Sequence[LessonText]]:
        """Yield the texts of all that match, some at a time."""
        columns, last = lessons.c, ""
        query = select(columns.updated_at, columns.id, columns.title, columns.content)
        query = self._filtered(query, filter_).order_by(columns.id).limit(_TEXTS)
        while some := self._connection.execute(query.where(columns.id > last)).all():
            yield [LessonText(*row) for row in some]
            last = some[-1].id

    def count(self, filter_: LessonFilter) -> int:
        """Return how many match."""
        if filter_ == LessonFilter():
            return self.total()
        if filter_ == LessonFilter(include_archived=True):
            return total(self._connection, self._tenant_id, "lessons", "lessons_archived")
        query = self._filtered(select(func.count()).select_from(lessons), filter_)
        return int(self._connection.execute(query).scalar_one())

    def _save_tags(self, saved: Collection[Lesson]) -> None:
        ids = [lesson.id for lesson in saved]
        delete_among(self._connection, self._tenant_id, lesson_tags.c.lesson_id, ids)
        tags = [
            {"tenant_id": self._tenant_id, "lesson_id": lesson.id, "tag": tag}
            for lesson in saved
            for tag in lesson.tags
        ]
        if tags:
            self._connection.execute(insert(lesson_tags), tags)

    def _filtered(self, query: Select[Any], filter_: LessonFilter) -> Select[Any]:
        columns = lessons.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(columns, filter_, ("agent_id", "category", "project"))
        if filter_.importance is not None:
            conditions.append(columns.importance == int(filter_.importance))
        if not filter_.include_archived:
            conditions.append(columns.archived_at.is_(None))
        for tag in filter_.tags:
            tagged = select(lesson_tags.c.lesson_id).where(
                lesson_tags.c.tenant_id == self._tenant_id, lesson_tags.c.tag == tag
            )
            conditions.append(columns.id.in_(tagged))
        return query.where(*conditions)


@cache
def _count_accesses() -> Update:
    columns = lessons.c
    return (
        update(lessons)
        .where(columns.tenant_id == bindparam("mine"), columns.id == bindparam("which"))
        .values(
            access_count=least(columns.access_count + bindparam("times"), MAX_COUNT),
            last_accessed_at=greatest(
                func.coalesce(columns.last_accessed_at, 0), bindparam("last")
            ),
        )
    )


_lesson = reads("lesson")(row_reader(lessons, Lesson, parts={"access_count": counted}))
_lesson_row = row_writer(Lesson, lessons, sets=["tags"])


def _lesson_details(
    title: str, category: str, importance: int, archived_us: int | None
) -> JsonObject:
    """Return what is shown of a recalled lesson beside its text."""
    return {
        "title": title,
        "category": category,
        "importance": LessonImportance(importance).name,
        "archived": archived_us is not None,
    }


LESSON_DETAILS = Details(
    key=lessons.c.id,
    columns=(lessons.c.title, lessons.c.category, lessons.c.importance, lessons.c.archived_at),
    decode=_lesson_details,
    followed=True,
)
