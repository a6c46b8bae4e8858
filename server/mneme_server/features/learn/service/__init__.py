"""LearnService, told by what its calls concern: lessons, reflections, the knowledge log."""

from __future__ import annotations

from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.learn.knowledge import Knowledge
from mneme_server.features.learn.lessons import Lessons
from mneme_server.features.learn.reflections import Reflections
from mneme_server.features.learn.service.knowledge import KnowledgeCalls
from mneme_server.features.learn.service.lessons import LessonCalls
from mneme_server.features.learn.service.reflections import ReflectionCalls


class LearnServicer(LessonCalls, ReflectionCalls, KnowledgeCalls):
    """Serves `mneme.v1.LearnService`."""

    def __init__(
        self,
        lessons: Lessons,
        reflections: Reflections,
        knowledge: Knowledge,
        foreground: Foreground,
    ) -> None:
        self._foreground = foreground
        self._lessons = lessons
        self._reflections = reflections
        self._knowledge = knowledge
