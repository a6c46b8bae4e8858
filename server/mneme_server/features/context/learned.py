"""Lessons and reflections that bear on a topic, and what it means to bear on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.context.words import coverage
from mneme_server.features.events.history import ActivityFilter
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.model import (
    LESSON,
    REFLECTION,
    FoundLesson,
    FoundReflection,
    Lesson,
    ReflectionFilter,
)
from mneme_server.features.learn.store.lessons import SqlLessons
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.confidence import FACTS_BY_DEFAULT, CosineScale
from mneme_server.features.recall.model import RecallAnswer, Recalled, RecallQuery
from mneme_server.features.recall.search import Recall

RELEVANT_SIMILARITY = 0.25
"""Cosine from which a text bears on a topic under the default model; unrelated texts lie below."""
RELEVANT_COVERAGE = 0.5
"""Share of the topic's telling words from which a text bears on it whatever its cosine: names and
numbers mean nothing to an embedding model."""
ADDRESSES = 0.45
"""Cosine from which a lesson or a reflection is taken to address an error, under that model."""
_LOOKED_AT = 50


class ReflectionSearch(Protocol):
    """Searches reflections; `features.learn.reflections.Reflections` does."""

    def search(
        self,
        tenant_id: str,
        task: str,
        filter_: ReflectionFilter,
        *,
        limit: int,
        min_score: float,
        min_confidence: float = 0.0,
        counted: bool = True,
        shared: bool = False,
    ) -> tuple[Sequence[FoundReflection], RecallAnswer]:
        """Return the reflections that bear on a task, and what recall said; count the search if it
        is to be `counted`. With `shared` also those of no user, agent or project."""
        ...


@dataclass(frozen=True, slots=True)
class Advice:
    """What was learned that bears on an error."""

    text: str
    lesson_id: str = ""
    reflection_id: str = ""


@dataclass(frozen=True, slots=True)
class Learned:
    """Finds lessons and reflections."""

    tenants: OpenTenants
    recall: Recall
    reflections: ReflectionSearch
    usage: Usage

    def lessons_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        *,
        counted: bool = True,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> list[FoundLesson]:
        """Return the lessons that bear on a topic, the best first, and count the accesses if they
        are to be `counted`.

        A lesson of another project or agent is left out, and for a user what another one's session
        taught; one of none is for all.
        """
        query = replace(_query(topic, LESSON, filter_), min_confidence=min_confidence)
        answer = self.recall.search(tenant_id, query)
        near = [found for found in answer.results if bears_on(topic, found, self.recall.scale)]
        stored = self._lessons(tenant_id, near, filter_.user_id)
        near = [found for found in near if found.document.source_id in stored][:limit]
        if not near:
            return []
        stored = {found.document.source_id: stored[found.document.source_id] for found in near}
        if counted:
            self.usage.lessons_read(tenant_id, stored)
        return [
            FoundLesson(
                self.usage.shown(tenant_id, stored[found.document.source_id]),
                found.score,
                found.similarity,
            )
            for found in near
        ]

    def _lessons(
        self, tenant_id: str, found: Sequence[Recalled], user_id: str
    ) -> dict[str, Lesson]:
        """Return the lessons that were recalled, by id, without those that a session of another
        user taught: one that was recorded after the lesson is not in what it is found by."""
        if not found:
            return {}
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlLessons).get_many([one.document.source_id for one in found])
            if not user_id:
                return stored
            taught = {one.source_session_id for one in stored.values() if one.source_session_id}
            sessions = unit.get(SqlSessions).get_many(taught)
        others = {key for key, session in sessions.items() if session.user_id not in ("", user_id)}
        return {
            key: lesson for key, lesson in stored.items() if lesson.source_session_id not in others
        }

    def reflections_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        *,
        counted: bool = True,
        min_confidence: float = FACTS_BY_DEFAULT,
    ) -> Sequence[FoundReflection]:
        """Return the reflections on the project, of the agent and of the user that bear on a
        topic; count the search if it is to be `counted`."""
        stored = DocumentFilter(
            kinds=frozenset({REFLECTION}),
            project=filter_.project,
            agent_id=filter_.agent_id,
            user_id=filter_.user_id,
            shared=filter_.shared,
        )
        with self.tenants.open(tenant_id) as tenant:
            if not tenant.index.select(stored).count:
                return ()  # Nothing was looked for, so no search is counted.
        found, _ = self.reflections.search(
            tenant_id,
            topic,
            ReflectionFilter(
                project=filter_.project, agent_id=filter_.agent_id, user_id=filter_.user_id
            ),
            limit=limit,
            min_score=0.0,
            min_confidence=min_confidence,
            counted=counted,
            shared=filter_.shared,
        )
        return [one for one in found if _is_near(topic, one, self.recall.scale)]

    def advice_on(self, tenant_id: str, error: str, user_id: str) -> Advice | None:
        """Return what a lesson or a reflection says about an error; None when none addresses it.

        With a user, nothing that sessions of other ones taught.
        """
        enough = self.recall.scale.of_usual(ADDRESSES)
        limit = _LOOKED_AT if user_id else 1
        query = _query(error, LESSON, ActivityFilter(user_id=user_id, shared=True), limit)
        near = [
            one for one in self.recall.search(tenant_id, query).results if _cosine(one) >= enough
        ]
        lessons = self._lessons(tenant_id, near, user_id)
        near = [one for one in near if one.document.source_id in lessons]
        query = _query(error, REFLECTION, ActivityFilter(user_id=user_id, shared=True), limit=1)
        near += [
            one for one in self.recall.search(tenant_id, query).results if _cosine(one) >= enough
        ]
        best = max(near, key=_cosine, default=None)  # Of equals a lesson.
        if best is None:
            return None
        key = best.document.source_id
        if best.document.kind == LESSON:
            return Advice(_said(lessons[key]), lesson_id=key)
        return Advice(best.document.text, reflection_id=key)


def bears_on(topic: str, found: Recalled, scale: CosineScale) -> bool:
    """Tell whether what recall found bears on the topic; `scale` is that of its similarities.

    Recall returns the best there is, however little that has to do with the question.
    """
    enough = scale.of_usual(RELEVANT_SIMILARITY)
    if found.similarity is not None and found.similarity >= enough:
        return True
    return coverage(topic, found.document.text) >= RELEVANT_COVERAGE


def addresses(topic: str, found: Recalled, scale: CosineScale) -> bool:
    """Tell whether what recall found is about the topic itself, not only near it."""
    return found.similarity is not None and found.similarity >= scale.of_usual(ADDRESSES)


def _cosine(found: Recalled) -> float:
    return found.similarity or 0.0


def _is_near(topic: str, found: FoundReflection, scale: CosineScale) -> bool:
    if found.similarity is None:  # It, or the topic, could not be embedded yet.
        return coverage(topic, found.reflection.text) >= RELEVANT_COVERAGE
    return found.similarity >= scale.of_usual(RELEVANT_SIMILARITY)


def _query(
    topic: str, kind: MemoryKind, filter_: ActivityFilter, limit: int = _LOOKED_AT
) -> RecallQuery:
    documents = DocumentFilter(
        kinds=frozenset({kind}),
        project=filter_.project,
        agent_id=filter_.agent_id,
        user_id=filter_.user_id,
        shared=filter_.shared,
        include_archived=False,
    )
    return RecallQuery(text=topic, filter=documents, limit=limit, min_confidence=FACTS_BY_DEFAULT)


def _said(lesson: Lesson) -> str:
    return lesson.content if lesson.title in lesson.content else f"{lesson.title}: {lesson.content}"
