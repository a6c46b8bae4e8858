"""Tenants do not see each other's causes, experiments and discoveries."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message
from mneme.v1 import causal_pb2 as causal_pb
from mneme.v1 import discovery_pb2 as discovery_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from support.isolation import (
    ABSENT,
    OTHER,
    TOPIC,
    Checks,
    World,
    answered_as_absent,
    episode_filters,
    experiment,
    not_found,
)
from support.making import create_edge, episode
from support.operations import ended, finished, response

isolates = Checks()


def _causes_are_out_of_reach(world: World, rpc: str, request: Callable[[str], Message]) -> None:
    assert not_found(answered_as_absent(world.ours, f"mneme.v1.CausalService/{rpc}", request))


@isolates("mneme.v1.CausalService/CreateEdge")
def _(world: World) -> None:
    # Id, cause and effect are free here, and what leads there to what closes no circle.
    create_edge(world.ours, "success", OTHER, 0.5, edge_id=OTHER)
    _causes_are_out_of_reach(
        world,
        "CreateEdge",
        lambda asked: causal_pb.CreateEdgeRequest(
            cause=f"skill:{asked}", effect="effect", edge_id="mine"
        ),
    )


@isolates("mneme.v1.CausalService/ListEdges")
def _(world: World) -> None:
    mine = create_edge(world.ours, "mine", "success", 0.5)
    answer = world.ours.causal.ListEdges(causal_pb.ListEdgesRequest())
    assert ([edge.id for edge in answer.edges], answer.total_size) == ([mine.id], 1)
    found = answered_as_absent(
        world.ours,
        "mneme.v1.CausalService/ListEdges",
        lambda asked: causal_pb.ListEdgesRequest(filter=causal_pb.EdgeFilter(cause=asked)),
    )
    assert found == [""]


@isolates("mneme.v1.CausalService/TraceEffects")
def _(world: World) -> None:
    create_edge(world.ours, "mine", "success", 0.5)
    answer = world.ours.causal.TraceEffects(causal_pb.TraceEffectsRequest(effect="success"))
    assert [chain.cause for chain in answer.chains] == ["mine"]
    found = answered_as_absent(
        world.ours,
        "mneme.v1.CausalService/TraceEffects",
        lambda asked: causal_pb.TraceEffectsRequest(cause=asked),
    )
    assert found == [""]


@isolates("mneme.v1.CausalService/CreateExperiment")
def _(world: World) -> None:
    made = world.ours.causal.CreateExperiment(experiment(OTHER)).experiment
    assert (made.assigned_count, made.observation_count) == (0, 0)


@isolates("mneme.v1.CausalService/ListExperiments")
def _(world: World) -> None:
    world.ours.causal.CreateExperiment(experiment("mine"))
    answer = world.ours.causal.ListExperiments(experiment_pb.ListExperimentsRequest())
    assert ([one.id for one in answer.experiments], answer.total_size) == (["mine"], 1)


@isolates("mneme.v1.CausalService/Discover")
def _(world: World) -> None:
    assert finished(world.ours, discovery_pb.DiscoverRequest()).episode_count == 0
    episode(world.ours, TOPIC)
    assert finished(world.ours, discovery_pb.DiscoverRequest()).episode_count == 1
    for filter_ in episode_filters().values():
        of_others, of_nobody = (
            discovery_pb.DiscoverRequest(
                question=discovery_pb.DiscoveryQuestion(filter=filter_(asked))
            )
            for asked in (OTHER, ABSENT)
        )
        assert finished(world.ours, of_others) == finished(world.ours, of_nobody)
    request = discovery_pb.DiscoverRequest(operation_id=OTHER)
    started = world.ours.causal.Discover(request).operation
    assert started.tenant_id == world.ours.tenant_id
    answer = response(ended(world.ours, started.id))
    assert answer.episode_count == 1


@isolates("mneme.v1.CausalService/GetDiscoverySchedule")
def _(world: World) -> None:
    theirs = discovery_pb.UpdateDiscoveryScheduleRequest(enabled=True, time="01:15")
    world.theirs.causal.UpdateDiscoverySchedule(theirs)
    request = discovery_pb.GetDiscoveryScheduleRequest()
    schedule = world.ours.causal.GetDiscoverySchedule(request).schedule
    assert (schedule.enabled, schedule.time) == (False, "03:00")


@isolates("mneme.v1.CausalService/UpdateDiscoverySchedule")
def _(world: World) -> None:
    ours = discovery_pb.UpdateDiscoveryScheduleRequest(enabled=True, time="04:45")
    world.ours.causal.UpdateDiscoverySchedule(ours)
    request = discovery_pb.GetDiscoveryScheduleRequest()
    assert world.theirs.causal.GetDiscoverySchedule(request).schedule.time != "04:45"


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
