"""Tenants do not see each other's memories and patterns."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from support.isolation import (
    OTHER,
    TOPIC,
    Checks,
    World,
    answered_as_absent,
    memory,
    not_found,
    pattern,
)
from support.making import struct

isolates = Checks()

_MEMORY = "mneme.v1.MemoryService"


def _memory_filters() -> dict[str, Callable[[str], memory_pb.MemoryFilter]]:
    made = {
        field: lambda asked, field=field: memory_pb.MemoryFilter(  # type: ignore[misc]
            **{field: [asked] if field in ("tags", "any_tags") else asked}
        )
        for field in ("user_id", "agent_id", "project", "tags", "any_tags")
    }
    return made | {"metadata": lambda asked: memory_pb.MemoryFilter(metadata=struct(name=asked))}


@isolates(f"{_MEMORY}/CreateMemory")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/CreateMemory",
        lambda asked: memory_pb.CreateMemoryRequest(text="new words", supersedes=[asked]),
    )
    assert not_found(found)
    # The other tenant has the same text of the same user, under this id; here all is free.
    request = memory(OTHER)
    request.text = "mine"
    assert not world.ours.memory.CreateMemory(request).already_known
    request = memory("mine")
    request.user_id = OTHER
    answer = world.ours.memory.CreateMemory(request)
    assert (answer.already_known, list(answer.similar)) == (False, [])


@isolates(f"{_MEMORY}/CreateMemories")
def _(world: World) -> None:
    new = memory_pb.NewMemory(id=OTHER, text=TOPIC, user_id=OTHER)
    (answer,) = world.ours.memory.CreateMemories(
        iter([memory_pb.CreateMemoriesRequest(memory=new)])
    )
    assert (answer.inserted_count, answer.known_count) == (1, 0)


@isolates(f"{_MEMORY}/ListMemories")
def _(world: World) -> None:
    world.ours.memory.CreateMemory(memory("mine"))
    mine = world.ours.memory.ListMemories(memory_pb.ListMemoriesRequest())
    assert ([one.id for one in mine.memories], mine.total_size) == (["mine"], 1)
    for field, filter_ in _memory_filters().items():
        found = answered_as_absent(
            world.ours,
            f"{_MEMORY}/ListMemories",
            lambda asked, f=filter_: memory_pb.ListMemoriesRequest(filter=f(asked)),
        )
        assert found == [""], field


@isolates(f"{_MEMORY}/SearchMemories")
def _(world: World) -> None:
    world.ours.memory.CreateMemory(memory("mine"))
    request = memory_pb.SearchMemoriesRequest(query=TOPIC)
    answer = world.ours.memory.SearchMemories(request)
    assert [found.memory.id for found in answer.results] == ["mine"]
    assert (answer.searched_count, answer.total_matches) == (1, 1)
    for field, filter_ in _memory_filters().items():
        request = memory_pb.SearchMemoriesRequest(query=TOPIC, filter=filter_(OTHER))
        answer = world.ours.memory.SearchMemories(request)
        assert (list(answer.results), answer.searched_count) == ([], 0), field


@isolates(f"{_MEMORY}/DeleteMemories")
def _(world: World) -> None:
    world.ours.memory.CreateMemory(memory("mine"))
    for filter_ in _memory_filters().values():
        request = memory_pb.DeleteMemoriesRequest(filter=filter_(OTHER), memory_ids=[OTHER])
        assert world.ours.memory.DeleteMemories(request).deleted_count == 0
    request = memory_pb.DeleteMemoriesRequest(filter=_memory_filters()["project"]("mine"))
    assert list(world.ours.memory.DeleteMemories(request).memory_ids) == ["mine"]


@isolates(f"{_MEMORY}/CreatePattern")
def _(world: World) -> None:
    # The other tenant has another pattern of this name; here it is free.
    request = pattern(OTHER)
    request.description = "mine"
    assert world.ours.memory.CreatePattern(request).pattern.description == "mine"
    theirs = world.theirs.memory.GetPattern(pattern_pb.GetPatternRequest(name=OTHER))
    assert theirs.pattern.description == OTHER


@isolates(f"{_MEMORY}/GetPattern")
@isolates(f"{_MEMORY}/DeletePattern")
@isolates(f"{_MEMORY}/MatchPattern")
def _(world: World) -> None:
    for rpc, kind in (
        ("GetPattern", pattern_pb.GetPatternRequest),
        ("DeletePattern", pattern_pb.DeletePatternRequest),
        ("MatchPattern", memory_pb.MatchPatternRequest),
    ):
        found = answered_as_absent(
            world.ours, f"{_MEMORY}/{rpc}", lambda asked, kind=kind: kind(name=asked)
        )
        assert not_found(found), rpc
    world.ours.memory.CreatePattern(pattern("mine"))
    world.ours.memory.CreateMemory(memory("mine"))
    answer = world.ours.memory.MatchPattern(memory_pb.MatchPatternRequest(name="mine"))
    assert [found.memory.id for found in answer.results] == ["mine"]
    assert (answer.total_matches, answer.searched_count) == (1, 1)


@isolates(f"{_MEMORY}/UpdatePattern")
def _(world: World) -> None:
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/UpdatePattern",
        lambda asked: pattern_pb.UpdatePatternRequest(
            pattern=pattern_pb.Pattern(id=asked, description="changed"),
            update_mask=FieldMask(paths=["description"]),
        ),
    )
    assert not_found(found)
    # The other tenant has a pattern of this name; here it is free.
    world.ours.memory.CreatePattern(pattern("mine"))
    renamed = pattern_pb.UpdatePatternRequest(
        pattern=pattern_pb.Pattern(id="mine", name=OTHER), update_mask=FieldMask(paths=["name"])
    )
    assert world.ours.memory.UpdatePattern(renamed).pattern.name == OTHER


@isolates(f"{_MEMORY}/ListPatterns")
@isolates(f"{_MEMORY}/ListPatternStats")
def _(world: World) -> None:
    world.ours.memory.CreatePattern(pattern("mine"))
    listed = world.ours.memory.ListPatterns(pattern_pb.ListPatternsRequest())
    assert ([one.name for one in listed.patterns], listed.total_size) == (["mine"], 1)
    told = world.ours.memory.ListPatternStats(pattern_pb.ListPatternStatsRequest())
    assert [one.pattern.name for one in told.stats] == ["mine"]
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/ListPatternStats",
        lambda asked: pattern_pb.ListPatternStatsRequest(name=asked),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/RecordPatternMatches")
def _(world: World) -> None:
    world.ours.memory.CreatePattern(pattern("mine"))
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/RecordPatternMatches",
        lambda asked: pattern_pb.RecordPatternMatchesRequest(
            name="mine", verdicts=[pattern_pb.MatchVerdict(memory_id=asked)]
        ),
    )
    assert not_found(found)
    found = answered_as_absent(
        world.ours,
        f"{_MEMORY}/RecordPatternMatches",
        lambda asked: pattern_pb.RecordPatternMatchesRequest(
            name=asked, verdicts=[pattern_pb.MatchVerdict(memory_id=OTHER)]
        ),
    )
    assert not_found(found)


@isolates(f"{_MEMORY}/GetMemoryStats")
@isolates(f"{_MEMORY}/OpenMemory")
def _(world: World) -> None:
    asked = stats_pb.GetMemoryStatsRequest(include_distribution=True, include_quality=True)
    ours, alone = (api.memory.GetMemoryStats(asked) for api in (world.ours, world.alone))
    assert ours.counts == alone.counts
    assert (ours.distribution, ours.quality) == (alone.distribution, alone.quality)
    begun = world.ours.memory.OpenMemory(stats_pb.OpenMemoryRequest())
    assert begun.counts == ours.counts
    assert OTHER not in str(ours)


@isolates(f"{_MEMORY}/ClearCache")
def _(world: World) -> None:
    everything = stats_pb.ClearCacheRequest(caches=[1, 2, 3])
    world.ours.memory.ClearCache(everything)
    world.theirs.memory.CreateMemory(memory(OTHER))
    world.theirs.memory.MatchPattern(memory_pb.MatchPatternRequest(name=OTHER))
    cleared = world.ours.memory.ClearCache(everything).cleared
    assert [one.count for one in cleared] == [0, 0, 0]
    # A text that the other tenant has stored is no text that is at hand here.
    text = f"Nobody has said this, {uuid4()}, before."  # Over REST it is said anew.
    said = memory_pb.CreateMemoryRequest(text=text, memory_id="said")
    for api, hits in ((world.theirs, 0), (world.theirs, 1), (world.ours, 0)):
        assert api.memory.CreateMemory(said).figures.cache_hits == hits
        api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["said"]))


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
