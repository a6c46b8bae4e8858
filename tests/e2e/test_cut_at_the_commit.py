"""The server is killed when an edge, an observation or a pattern is written and not committed, or
committed and not answered: what is asked again is there once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from mneme.v1 import causal_pb2, experiment_pb2, pattern_pb2
from mneme.v1 import memory_service_pb2 as memory_pb
from support.api import Api
from support.making import create_edge
from support.server import ServerProcess, server_process

CUTS = ("row {}+", "{}+")
"""Where a call is cut: its row is written and not committed; all is committed and not answered."""


def prepare(api: Api) -> None:
    """Make what the calls need."""
    expression = pattern_pb2.RegexPattern(expression=r"T-\d+")
    api.memory.CreatePattern(pattern_pb2.CreatePatternRequest(name="known", regex=expression))
    for cut in range(len(CUTS)):
        request = memory_pb.CreateMemoryRequest(memory_id=f"m{cut}", text=f"ticket T-{cut}")
        api.memory.CreateMemory(request)
    api.causal.CreateExperiment(
        experiment_pb2.CreateExperimentRequest(
            experiment_id="x", name="Review first", cause="review", effect="success"
        )
    )


def edge(api: Api, cut: int) -> Message:
    return create_edge(api, f"memory:m{cut}", "success", 0.25, edge_id=f"e{cut}")


def assign(api: Api, cut: int) -> Message:
    request = experiment_pb2.AssignTreatmentRequest(experiment_id="x", subject=f"s{cut}")
    made = api.causal.AssignTreatment(request)
    return experiment_pb2.AssignTreatmentResponse(treatment=made.treatment)


def observe(api: Api, cut: int) -> Message:
    request = experiment_pb2.RecordObservationRequest(
        experiment_id="x", observation_id=f"o{cut}", subject=f"o{cut}", outcome=1, treatment=True
    )
    made = api.causal.RecordObservation(request)
    return experiment_pb2.RecordObservationResponse(observation_id=made.observation_id)


def pattern(api: Api, cut: int) -> Message:
    expression = pattern_pb2.RegexPattern(expression="ticket")
    request = pattern_pb2.CreatePatternRequest(name=f"p{cut}", regex=expression)
    return api.memory.CreatePattern(request).pattern


def judge(api: Api, cut: int) -> Message:
    verdict = pattern_pb2.MatchVerdict(memory_id=f"m{cut}", right=True)
    request = pattern_pb2.RecordPatternMatchesRequest(name="known", verdicts=[verdict])
    return api.memory.RecordPatternMatches(request).stats


CALLS: dict[str, Callable[[Api, int], Message]] = {
    "CreateEdge": edge,
    "RecordObservation": observe,
    "CreatePattern": pattern,
    "AssignTreatment": assign,
    "RecordPatternMatches": judge,
}


def counted(api: Api) -> dict[str, int]:
    """How many there are of what each of the calls makes."""
    request = experiment_pb2.GetExperimentRequest(experiment_id="x")
    experiment = api.causal.GetExperiment(request).experiment
    stats = api.memory.ListPatternStats(pattern_pb2.ListPatternStatsRequest()).stats
    return {
        "CreateEdge": api.causal.ListEdges(causal_pb2.ListEdgesRequest()).total_size,
        "RecordObservation": experiment.observation_count,
        "CreatePattern": len(stats) - 1,  # "known" was there before.
        "AssignTreatment": experiment.assigned_count,
        "RecordPatternMatches": sum(one.right_count for one in stats),
    }


def test_what_is_asked_again_after_a_kill_is_there_once(tmp_path: Path) -> None:
    with server_process(tmp_path) as first:
        api = first.keys.tenant()
        prepare(api)
    there = dict.fromkeys(CALLS, 0)
    for cut, point in enumerate(CUTS):
        for name, call in CALLS.items():
            server = ServerProcess(tmp_path, cut_at=point.format(name))
            cut_off = server.keys.api(api.secret)
            with pytest.raises(grpc.RpcError):
                call(cut_off, cut)
            assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
            server._release()
        with server_process(tmp_path) as server:
            again = server.keys.api(api.secret)
            assert counted(again) == {name: n + cut for name, n in there.items()}, point
            answered = {name: call(again, cut) for name, call in CALLS.items()}
            there = dict.fromkeys(CALLS, cut + 1)
            assert counted(again) == there
            assert {name: call(again, cut) for name, call in CALLS.items()} == answered
            assert counted(again) == there
