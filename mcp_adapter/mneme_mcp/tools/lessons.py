"""What a lesson looks like in answers, whichever tool gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme_mcp.outputs import CamelOutput, Free, Name
from mneme_mcp.text import Item, lay_out


class LessonOutput(CamelOutput):
    """A lesson."""

    id: str
    title: str
    content: str
    category: str = ""
    importance: Name = ""
    agent_id: str = ""
    project: str = ""
    tags: list[str] = []
    context: Free = {}
    source_session_id: str = ""
    source_event_id: str = ""
    access_count: int = 0
    last_accessed_at: str = ""
    created_at: str = ""
    updated_at: str = ""
    archived_at: str = ""
    score: float | None = None


def found_lesson(found: Mapping[str, Any]) -> LessonOutput:
    """A lesson of a search, with its score."""
    return LessonOutput.model_validate({**found["lesson"], "score": found["score"]})


def lesson_item(lesson: LessonOutput, mark: str) -> Item:
    """A lesson in a list."""
    about = [lesson.category, lesson.importance if lesson.importance != "normal" else ""]
    if lesson.archived_at:
        about.append("archived")
    labels = ", ".join(filter(None, about))
    score = f" ({lesson.score:.2f})" if lesson.score is not None else ""
    return Item(f"{mark} {lesson.title} [{labels}; id {lesson.id}]{score}:", lesson.content)


def lessons_within(lessons: Sequence[LessonOutput], budget: int) -> tuple[list[str], int]:
    """Lessons as numbered lines, their contents cut likewise, and how many did not fit."""
    laid = lay_out([lesson_item(one, f"{n}.") for n, one in enumerate(lessons, 1)], budget)
    for lesson, body in zip(lessons, laid.bodies, strict=False):
        lesson.content = body
    return list(laid.lines), laid.omitted
