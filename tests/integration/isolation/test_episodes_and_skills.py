"""Tenants do not see each other's episodes and skills."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import refused
from support.isolation import (
    OTHER,
    TOPIC,
    Checks,
    World,
    answered_as_absent,
    episode_filters,
    link,
    not_found,
)
from support.making import episode, skill

isolates = Checks()


@isolates("mneme.v1.SkillService/CreateEpisode")
def _(world: World) -> None:
    # The id is free here, and the other's session has no record to take anything from.
    with refused() as failure:
        episode(world.ours, "", session_id=OTHER)
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    stored = episode(world.ours, "mine", session_id=OTHER, episode_id=OTHER)
    assert (stored.agent_id, list(stored.filled_fields)) == ("", [])


@isolates("mneme.v1.SkillService/ListEpisodes")
def _(world: World) -> None:
    episode(world.ours, TOPIC, episode_id="mine")
    answer = world.ours.skill.ListEpisodes(episode_pb.ListEpisodesRequest())
    assert ([found.id for found in answer.episodes], answer.total_size) == (["mine"], 1)
    for filter_ in episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ListEpisodes",
            lambda asked, f=filter_: episode_pb.ListEpisodesRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/SearchEpisodes")
def _(world: World) -> None:
    episode(world.ours, TOPIC, episode_id="mine")
    request = episode_pb.SearchEpisodesRequest(task=TOPIC)
    answer = world.ours.skill.SearchEpisodes(request)
    assert [found.episode.id for found in answer.results] == ["mine"]
    assert (answer.searched_count, answer.critiques.with_critique) == (1, 0)
    for filter_ in episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/SearchEpisodes",
            lambda asked, f=filter_: episode_pb.SearchEpisodesRequest(task=TOPIC, filter=f(asked)),
        )
        assert found == ["critiques {\n}\n"]


@isolates("mneme.v1.SkillService/ImportEpisodes")
def _(world: World) -> None:
    brought = [episode_pb.Episode(id=OTHER, task="mine")]
    answer = world.ours.skill.ImportEpisodes(
        skill_pb.ImportEpisodesRequest(
            episodes=brought, on_conflict=skill_pb.EPISODE_CONFLICT_REPLACE
        )
    )
    assert (answer.created_count, answer.replaced_count) == (1, 0)


@isolates("mneme.v1.SkillService/ExportEpisodes")
def _(world: World) -> None:
    for filter_ in episode_filters().values():
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ExportEpisodes",
            lambda asked, f=filter_: skill_pb.ExportEpisodesRequest(filter=f(asked)),
        )
        assert answer == []


@isolates("mneme.v1.SkillService/CreateSkill")
def _(world: World) -> None:
    # Id and name are free here.
    saved = skill(world.ours, OTHER, skill_id=OTHER)
    assert (saved.description, saved.record.uses) == ("", 0)


def _skills_are_out_of_reach(world: World, rpc: str, request: Callable[[str], Message]) -> None:
    assert not_found(answered_as_absent(world.ours, f"mneme.v1.SkillService/{rpc}", request))


@isolates("mneme.v1.SkillService/GetSkill")
def _(world: World) -> None:
    _skills_are_out_of_reach(
        world, "GetSkill", lambda asked: skill_pb.GetSkillRequest(skill_id=asked)
    )
    skill(world.ours, "child", skill_id="child")
    mine = world.ours.skill.GetSkill(skill_pb.GetSkillRequest(skill_id="child"))
    assert list(mine.links) == []


@isolates("mneme.v1.SkillService/LinkSkills")
def _(world: World) -> None:
    skill(world.ours, "child", skill_id="child")
    _skills_are_out_of_reach(world, "LinkSkills", lambda asked: link(asked, "child"))
    # What is linked there closes no circle here.
    skill(world.ours, "parent", skill_id=OTHER)
    assert world.ours.skill.LinkSkills(link("child", OTHER)).link.parent_name == "child"


def _skill_filters() -> dict[str, Callable[[str], skill_pb.SkillFilter]]:
    return {
        "project": lambda asked: skill_pb.SkillFilter(project=asked),
        "tags": lambda asked: skill_pb.SkillFilter(tags=[asked]),
    }


@isolates("mneme.v1.SkillService/ListSkills")
def _(world: World) -> None:
    skill(world.ours, "mine")
    answer = world.ours.skill.ListSkills(skill_pb.ListSkillsRequest())
    assert ([found.name for found in answer.skills], answer.total_size) == (["mine"], 1)
    for filter_ in _skill_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ListSkills",
            lambda asked, f=filter_: skill_pb.ListSkillsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/ConsolidateSkills")
def _(world: World) -> None:
    request = skill_pb.ConsolidateSkillsRequest(min_attempts=1)
    assert world.ours.skill.ConsolidateSkills(request).episode_count == 0
    mine = episode(world.ours, TOPIC)
    (made,) = world.ours.skill.ConsolidateSkills(request).skills
    assert list(made.skill.source_episode_ids) == [mine.id]
    for filter_ in episode_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/ConsolidateSkills",
            lambda asked, f=filter_: skill_pb.ConsolidateSkillsRequest(filter=f(asked)),
        )
        assert found == [""]


@isolates("mneme.v1.SkillService/SearchSkills")
def _(world: World) -> None:
    skill(world.ours, "mine", description=TOPIC)
    answer = world.ours.skill.SearchSkills(skill_pb.SearchSkillsRequest(task=TOPIC))
    assert [found.skill.name for found in answer.results] == ["mine"]
    assert answer.searched_count == 1
    for filter_ in _skill_filters().values():
        found = answered_as_absent(
            world.ours,
            "mneme.v1.SkillService/SearchSkills",
            lambda asked, f=filter_: skill_pb.SearchSkillsRequest(task=TOPIC, filter=f(asked)),
        )
        assert found == [""]


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
