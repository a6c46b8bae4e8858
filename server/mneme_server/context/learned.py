"""What bears on a topic at all, and what was learned that does: lessons and reflections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.context.ports import ContextUnit, ReflectionSearch
from mneme_server.context.words import coverage
from mneme_server.corpus.document import DocumentFilter
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.corpus.tenant import OpenTenants
from mneme_server.events.activity import ActivityFilter
from mneme_server.learn.kinds import LESSON, REFLECTION
from mneme_server.learn.lesson_model import FoundLesson, Lesson
from mneme_server.learn.reflection_model import FoundReflection, ReflectionFilter
from mneme_server.learn.usage import Usage
from mneme_server.recall.confidence import RECALLED_BY_DEFAULT
from mneme_server.recall.cosines import Scale
from mneme_server.recall.search import Recall, Recalled, RecallQuery

RELEVANT_SIMILARITY = 0.25
"""Cosine from which a text bears on a topic under the default model; unrelated texts lie below."""
RELEVANT_COVERAGE = 0.5
"""Share of the topic's telling words from which a text bears on it whatever its cosine: names and
numbers mean nothing to an embedding model."""
ADDRESSES = 0.45
"""Cosine from which a lesson or a reflection is taken to address an error, under that model."""
_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Advice:
    """What was learned that bears on an error."""

    text: str
    lesson_id: str = ""
    reflection_id: str = ""


@dataclass(frozen=True, slots=True)
class Learned:
    """Finds lessons and reflections."""

    tenants: OpenTenants[ContextUnit]
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
    ) -> list[FoundLesson]:
        """Return the lessons that bear on a topic, the best first, and count the accesses if they
        are to be `counted`.

        A lesson of another project or agent is left out; one of none is for all.
        """
        answer = self.recall(tenant_id, _query(topic, LESSON, filter_))
        near = [found for found in answer.results if bears_on(topic, found, self.recall.scale)][
            :limit
        ]
        if not near:
            return []
        ids = [found.document.source_id for found in near]
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            stored = unit.lessons.get_many(ids)
        if counted:
            self.usage.lessons_read(tenant_id, stored)
        return [
            FoundLesson(
                self.usage.shown(tenant_id, stored[found.document.source_id]),
                found.score,
                found.similarity,
            )
            for found in near
            if found.document.source_id in stored
        ]

    def reflections_on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        *,
        counted: bool = True,
    ) -> Sequence[FoundReflection]:
        """Return the reflections on the project and of the agent that bear on a topic; count the
        search if it is to be `counted`."""
        stored = DocumentFilter(
            kinds=frozenset({REFLECTION}), project=filter_.project, agent_id=filter_.agent_id
        )
        with self.tenants.open(tenant_id) as memory:
            if not memory.index.select(stored).count:
                return ()  # Nothing was looked for, so no search is counted.
        found, _ = self.reflections.search(
            tenant_id,
            topic,
            ReflectionFilter(project=filter_.project, agent_id=filter_.agent_id),
            limit=limit,
            min_score=0.0,
            min_confidence=RECALLED_BY_DEFAULT,
            counted=counted,
        )
        return [one for one in found if _is_near(topic, one, self.recall.scale)]

    def advice_on(self, tenant_id: str, error: str) -> Advice | None:
        """Return what a lesson or a reflection says about an error; None when none addresses it."""
        best: Recalled | None = None
        enough = self.recall.scale.of_usual(ADDRESSES)
        for kind in (LESSON, REFLECTION):
            query = _query(error, kind, ActivityFilter(), limit=1)
            for found in self.recall(tenant_id, query).results:
                similarity = found.similarity or 0.0
                if similarity >= enough and similarity > (best.similarity or 0.0 if best else 0):
                    best = found
        if best is None:
            return None
        document = best.document
        if document.kind == LESSON:
            with self.tenants.open(tenant_id) as memory, memory.read() as unit:
                lesson = unit.lessons.get_many([document.source_id]).get(document.source_id)
            return None if lesson is None else Advice(_said(lesson), lesson_id=lesson.id)
        return Advice(document.text, reflection_id=document.source_id)


def bears_on(topic: str, found: Recalled, scale: Scale) -> bool:
    """Tell whether what recall found bears on the topic; `scale` is that of its similarities.

    Recall returns the best there is, however little that has to do with the question.
    """
    enough = scale.of_usual(RELEVANT_SIMILARITY)
    if found.similarity is not None and found.similarity >= enough:
        return True
    return coverage(topic, found.document.text) >= RELEVANT_COVERAGE


def addresses(topic: str, found: Recalled, scale: Scale) -> bool:
    """Tell whether what recall found is about the topic itself, not only near it."""
    return found.similarity is not None and found.similarity >= scale.of_usual(ADDRESSES)


def _is_near(topic: str, found: FoundReflection, scale: Scale) -> bool:
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
        shared=True,
        include_archived=False,
    )
    return RecallQuery(
        text=topic, filter=documents, limit=limit, min_confidence=RECALLED_BY_DEFAULT
    )


def _said(lesson: Lesson) -> str:
    return lesson.content if lesson.title in lesson.content else f"{lesson.title}: {lesson.content}"
