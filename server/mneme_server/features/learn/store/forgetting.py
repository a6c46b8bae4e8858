"""Forgetting of lessons, reflections and knowledge."""

from __future__ import annotations

from sqlalchemy import select, update

from mneme_server.engine.corpus.forgetting import Items, merged, things
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter, array
from mneme_server.engine.store.portable import json_array, json_items, listed
from mneme_server.features.learn.model import KNOWLEDGE, LESSON, REFLECTION
from mneme_server.features.learn.store.tables import (
    counters,
    knowledge,
    lesson_tags,
    lessons,
    reflection_tags,
    reflections,
    sayings,
)

_EVENT = "event"


class LearnForgetter(SqlForgetter):
    """Forgets lessons, reflections and entries of the knowledge log. They follow from the session
    that they are about, lessons from an event, reflections from what they say they are related to.
    """

    rows = (
        Rows(
            LESSON.name, lessons.c.id,
            agent=lessons.c.agent_id, session=lessons.c.source_session_id,
            project=lessons.c.project, tag=lesson_tags.c.tag, document=LESSON,
        ),
        Rows(
            REFLECTION.name, reflections.c.id,
            agent=reflections.c.agent_id, session=reflections.c.session_id,
            project=reflections.c.project, tag=reflection_tags.c.tag, document=REFLECTION,
            total="reflections",
        ),
        Rows(
            KNOWLEDGE.name, knowledge.c.id,
            agent=knowledge.c.agent_id, project=knowledge.c.project, document=KNOWLEDGE,
        ),
    )  # fmt: skip

    def derived(self, found: Items) -> Items:
        """See `Forgetter`."""
        lesson_rows = self.rows[0]
        of_events = found.get(_EVENT, set())
        follow: list[Items] = [super().derived(found)]
        if of_events:
            ids = self.ids_where(lesson_rows, lessons.c.source_event_id, of_events)
            follow.append({LESSON.name: ids})
        related = {one for ids in things(found).values() for one in ids}
        if related:
            follow.append({REFLECTION.name: self._naming(related)})
        return merged(follow)

    def erase(self, found: Items, unit: CorpusUnit) -> None:
        """See `Forgetter`."""
        if gone := found.get(REFLECTION.name):
            self._unlink(gone)
        if gone := found.get(LESSON.name):
            of_these = lessons.c.id.in_(listed(array(gone)))
            archived = len(self.select(lessons.c.id, of_these, lessons.c.archived_at.is_not(None)))
            there = len(self.select(lessons.c.id, of_these))
            self.count("lessons_archived", -archived)
            self.count("lessons", archived - there)
        super().erase(found, unit)

    def _naming(self, ids: set[str]) -> set[str]:
        """Return the reflections that name one of these as what they are related to."""
        each = json_items(reflections.c.related_entity_ids)
        named = select(each.c.value).where(each.c.value.in_(listed(array(ids))))
        return self.select(
            reflections.c.id, reflections.c.related_entity_ids != "[]", named.exists()
        )

    def _unlink(self, gone: set[str]) -> None:
        """Have no reflection say that it applied one that is gone."""
        each = json_items(reflections.c.applied_reflection_ids)
        mine = reflections.c.tenant_id == self._tenant_id
        named = select(each.c.value).where(each.c.value.in_(listed(array(gone))))
        left = (
            select(json_array(each.c.value))
            .where(each.c.value.not_in(listed(array(gone))))
            .scalar_subquery()
        )
        self._connection.execute(
            update(reflections)
            .where(mine, reflections.c.applied_reflection_ids != "[]", named.exists())
            .values(applied_reflection_ids=left)
        )


FORGETS = Forgets(
    LearnForgetter,
    {
        lessons: "deleted",
        lesson_tags: "deleted with their lesson",
        reflections: "deleted",
        reflection_tags: "deleted with their reflection",
        sayings: "deleted with their reflection",
        counters: "holds no content",
        knowledge: "deleted",
    },
)
