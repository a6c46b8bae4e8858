"""What a lesson looks like in answers, whichever tool gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme_mcp.outputs import CamelOutput, Free, Name
from mneme_mcp.text import Item, Listing, listing


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
    etag: str = ""
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


def list_lessons(head: str, lessons: Sequence[LessonOutput], budget: int) -> Listing:
    """Lessons as numbered lines within a budget; their contents are cut likewise."""
    items = [lesson_item(one, f"{place}.") for place, one in enumerate(lessons, 1)]
    shown = listing(head, items, budget)
    for lesson, body in zip(lessons, shown.bodies, strict=False):
        lesson.content = body
    return shown
