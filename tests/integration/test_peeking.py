"""Whoever looks at what agents use does not count as one who uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2, reflection_pb2
from support.api import Api
from support.making import lesson, list_lessons

Look = Callable[[Api, bool], Any]


def get_lesson(api: Api, peek: bool) -> Any:
    return api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id="retry", peek=peek)).lesson


def search_lessons(api: Api, peek: bool) -> Any:
    request = learn_pb.SearchLessonsRequest(query="a timeout of the bank", peek=peek)
    (found,) = api.learn.SearchLessons(request).results
    return found.lesson


def get_context(api: Api, peek: bool) -> Any:
    request = context_pb.GetContextRequest(topic="a timeout of the bank", peek=peek)
    (found,) = api.context.GetContext(request).lessons
    return found.lesson


@pytest.mark.parametrize("look", [get_lesson, search_lessons, get_context])
def test_a_peek_at_a_lesson_is_no_access(look: Look, api: Api) -> None:
    lesson(api, "Retry once", "A timeout of the bank is worth one retry.", lesson_id="retry")
    peeked = look(api, True)
    assert (peeked.access_count, peeked.HasField("last_accessed_at")) == (0, False)
    assert look(api, False).access_count == 1
    assert look(api, True).access_count == 1
    assert [one.access_count for one in list_lessons(api)] == [1]


def search_reflections(api: Api, peek: bool) -> Any:
    request = reflection_pb2.SearchReflectionsRequest(task_description="pay a bill", peek=peek)
    return api.learn.SearchReflections(request)


def context_of_reflections(api: Api, peek: bool) -> Any:
    request = context_pb.GetContextRequest(topic="pay a bill", peek=peek)
    return api.context.GetContext(request)


@pytest.mark.parametrize("look", [search_reflections, context_of_reflections])
def test_a_peek_at_reflections_is_no_search(look: Look, api: Api) -> None:
    api.learn.CreateReflection(
        reflection_pb2.CreateReflectionRequest(
            session_id="s", task_description="pay a bill", outcome="OUTCOME_SUCCESS",
            what_worked=["ask for the amount first"],
        )
    )  # fmt: skip

    def searched() -> int:
        request = reflection_pb2.SummarizeReflectionsRequest()
        return int(api.learn.SummarizeReflections(request).metrics.search_count)

    look(api, True)
    assert searched() == 0
    look(api, False)
    assert searched() == 1


def test_a_peek_at_what_a_pattern_finds_is_no_use(api: Api) -> None:
    api.memory.CreatePattern(
        pattern_pb2.CreatePatternRequest(
            name="numbers", regex=pattern_pb2.RegexPattern(expression="[0-9]+")
        )
    )

    def uses() -> int:
        asked = pattern_pb2.ListPatternStatsRequest(name="numbers")
        (stats,) = api.memory.ListPatternStats(asked).stats
        return int(stats.uses)

    for peek, used in ((True, 0), (False, 1), (True, 1)):
        api.memory.MatchPattern(memory_pb.MatchPatternRequest(name="numbers", peek=peek))
        assert uses() == used
