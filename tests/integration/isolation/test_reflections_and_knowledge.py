"""Tenants do not see each other's reflections, nor what they log as knowledge."""

from __future__ import annotations

from collections.abc import Callable

from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from support.isolation import (
    ABSENT,
    OTHER,
    TOPIC,
    Checks,
    World,
    answered_as_absent,
    entry,
    reflection,
)

isolates = Checks()


@isolates("mneme.v1.LearnService/CreateReflection")
def _(world: World) -> None:
    # The id is free here, and an attempt at the other's task in the other's session is the first.
    request = reflection(OTHER)
    request.ClearField("tags")
    request.applied_reflection_ids.append(ABSENT)
    stored = world.ours.learn.CreateReflection(request).reflection
    assert (stored.attempt_number, list(stored.tags)) == (1, [])


def _reflection_filters() -> dict[str, Callable[[str], reflection_pb.ReflectionFilter]]:
    fields = ("session_id", "project", "agent_id", "tags")
    return {
        field: lambda asked, field=field: reflection_pb.ReflectionFilter(  # type: ignore[misc]
            **{field: [asked] if field == "tags" else asked}
        )
        for field in fields
    }


@isolates("mneme.v1.LearnService/ListReflections")
def _(world: World) -> None:
    answer = world.ours.learn.ListReflections(reflection_pb.ListReflectionsRequest())
    assert (list(answer.reflections), answer.total_size, answer.text) == ([], 0, "")
    for filter_ in _reflection_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/ListReflections",
            lambda asked, f=filter_: reflection_pb.ListReflectionsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.LearnService/SearchReflections")
def _(world: World) -> None:
    world.ours.learn.CreateReflection(reflection("mine"))
    request = reflection_pb.SearchReflectionsRequest(task_description=TOPIC)
    answer = world.ours.learn.SearchReflections(request)
    assert [found.reflection.id for found in answer.results] == ["mine"]
    assert answer.searched_count == 1
    for filter_ in _reflection_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SearchReflections",
            lambda asked, f=filter_: reflection_pb.SearchReflectionsRequest(
                task_description=TOPIC, filter=f(asked)
            ),
        )
        assert found == [""]


@isolates("mneme.v1.LearnService/SummarizeReflections")
def _(world: World) -> None:
    request = reflection_pb.SummarizeReflectionsRequest()
    mine = world.ours.learn.SummarizeReflections(request)
    assert (mine.total_reflections, list(mine.recent_lessons)) == (0, [])
    assert (mine.metrics.store_count, mine.metrics.cross_session_reuse) == (0, 0)
    for field in ("project", "session_id"):
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SummarizeReflections",
            lambda asked, field=field: reflection_pb.SummarizeReflectionsRequest(**{field: asked}),
        )
        assert "total_reflections" not in found[0]


@isolates("mneme.v1.LearnService/CreateKnowledge")
def _(world: World) -> None:
    # The other tenant has logged another line under this id; here it is free.
    request = entry(OTHER)
    request.lesson = "mine"
    assert not world.ours.learn.CreateKnowledge(request).duplicate


def _filter(field: str, asked: str) -> knowledge_pb.KnowledgeFilter:
    return knowledge_pb.KnowledgeFilter(**{field: [asked] if field == "tags" else asked})


@isolates("mneme.v1.LearnService/ListKnowledge")
def _(world: World) -> None:
    world.ours.learn.CreateKnowledge(entry("mine"))
    mine = world.ours.learn.ListKnowledge(knowledge_pb.ListKnowledgeRequest())
    assert ([one.id for one in mine.entries], mine.total_size) == (["mine"], 1)
    for field in ("project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/ListKnowledge",
            lambda asked, field=field: knowledge_pb.ListKnowledgeRequest(
                filter=_filter(field, asked)
            ),
        )
        assert answer == [""], field


@isolates("mneme.v1.LearnService/SearchKnowledge")
def _(world: World) -> None:
    world.ours.learn.CreateKnowledge(entry("mine"))
    answer = world.ours.learn.SearchKnowledge(knowledge_pb.SearchKnowledgeRequest(query=TOPIC))
    assert [found.entry.id for found in answer.entries] == ["mine"]
    assert OTHER not in answer.markdown
    for field in ("project", "tags"):
        found = answered_as_absent(
            world.ours,
            "mneme.v1.LearnService/SearchKnowledge",
            lambda asked, field=field: knowledge_pb.SearchKnowledgeRequest(
                query=TOPIC, filter=_filter(field, asked)
            ),
        )
        assert "entries" not in found[0]


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
