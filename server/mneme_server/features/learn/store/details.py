"""What is shown of recalled lessons, reflections and knowledge entries beside their texts."""

from __future__ import annotations

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.store.kinds import Details
from mneme_server.features.events.model import Outcome
from mneme_server.features.learn.model import KnowledgeType, LessonImportance, SuccessRate
from mneme_server.features.learn.store.tables import knowledge, lessons, reflections


def _lesson(title: str, category: str, importance: int, archived_us: int | None) -> JsonObject:
    return {
        "title": title,
        "category": category,
        "importance": LessonImportance(importance).name,
        "archived": archived_us is not None,
    }


def _reflection(outcome: int, attempt_number: int, next_strategy: str) -> JsonObject:
    return {
        "outcome": Outcome(outcome).name,
        "attempt_number": attempt_number,
        "next_strategy": next_strategy,
    }


def _knowledge(project: str, type_: int, success_rate: str) -> JsonObject:
    rate = SuccessRate.parse(success_rate)
    return {
        "project": project,
        "type": KnowledgeType(type_).name,
        "success_rate": {"successes": rate.successes, "tries": rate.tries} if rate else None,
    }


LESSON_DETAILS = Details(
    key=lessons.c.id,
    columns=(lessons.c.title, lessons.c.category, lessons.c.importance, lessons.c.archived_at),
    decode=_lesson,
    followed=True,
)
REFLECTION_DETAILS = Details(
    key=reflections.c.id,
    columns=(reflections.c.outcome, reflections.c.attempt_number, reflections.c.next_strategy),
    decode=_reflection,
    followed=True,
)
KNOWLEDGE_DETAILS = Details(
    key=knowledge.c.id,
    columns=(knowledge.c.project, knowledge.c.type, knowledge.c.success_rate),
    decode=_knowledge,
    followed=True,
)
