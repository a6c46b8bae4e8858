from __future__ import annotations

import re
from typing import Any

from mneme.messages import (
    AnalyzeExperimentResponse,
    AssignTreatmentResponse,
    CausalChain,
    CausalEdge,
    ConcludeExperimentResponse,
    CreateEdgeResponse,
    DeleteEdgeResponse,
    DiscoveredEffect,
    DiscoverResponse,
    DiscoverResult,
    GetDiscoveryScheduleResponse,
    GetEdgeResponse,
    ListEdgesResponse,
    ListExperimentsResponse,
    Operation,
    RecordObservationResponse,
    TraceEffectsResponse,
    UpdateDiscoveryScheduleResponse,
    UpdateEdgeResponse,
    UpdateExperimentResponse,
    WaitOperationResponse,
)
from mneme.plain import from_dict
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer


def edge(**fields: Any) -> CausalEdge:
    known = {
        "id": "01E", "cause": "review", "effect": "success", "uplift": 0.25, "confidence": 0.95,
        "sample_size": 40, "origin": "STATED", "low": 0.1, "high": 0.4,
    }  # fmt: skip
    return from_dict(known | fields, CausalEdge())


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


RESULT = {
    "treatment": {"count": 20, "mean": 0.8, "deviation": 0.4},
    "control": {"count": 20, "mean": 0.5},
    "uplift": 0.3, "p_value": 0.0123, "low": 0.07, "high": 0.53, "sequential_low": -0.1,
    "sequential_high": 0.7, "notes": ["Look once."],
}  # fmt: skip


def test_an_edge_is_added_listed_shown_and_deleted(served: ScriptedServer) -> None:
    served.on("CreateEdge", CreateEdgeResponse(edge=edge()))
    result = mneme(
        "causal", "add", "review", "success", "--uplift", "0.25", "--evidence", "e-1",
        "--metadata", '{"by": "ann"}',
    )  # fmt: skip
    assert result.lines == ["added 01E: review → success"]
    request = served.last("CreateEdge")
    assert (request.cause, request.uplift, list(request.evidence_ids)) == ("review", 0.25, ["e-1"])
    assert request.edge_id  # So that a retry cannot add it twice.
    served.on("ListEdges", ListEdgesResponse(edges=[edge()]))
    result = mneme("causal", "list", "--effect", "success", "--min-confidence", "0.5")
    assert cells(result.lines[-1])[:4] == ["review", "success", "+0.25", "0.95"]
    assert served.last("ListEdges").filter.effect == "success"
    served.on("GetEdge", GetEdgeResponse(edge=edge(mechanism="Two read more")))
    out = "\n".join(mneme("causal", "get", "01E").lines)
    assert "+0.25 (95 %: +0.1 to +0.4)" in out
    assert "Two read more" in out
    served.on("DeleteEdge", DeleteEdgeResponse(edge=edge()))
    assert mneme("causal", "delete", "01E", "--yes").lines == ["deleted 01E: review → success"]


def test_chains_are_shown_with_what_they_take_for_granted(served: ScriptedServer) -> None:
    chain = CausalChain(
        cause="review", effect="joy", uplift=-0.1, confidence=0.8,
        path=[edge(), edge(cause="success", effect="joy")],
    )  # fmt: skip
    answer = TraceEffectsResponse(chains=[chain], total_chains=1, assumption="Nothing else acts.")
    served.on("TraceEffects", answer)
    result = mneme("causal", "query", "--cause", "review")
    assert cells(result.lines[-1]) == ["-0.1", "0.80", "review → success → joy"]
    assert "Nothing else acts." in result.err
    served.on("TraceEffects", TraceEffectsResponse())
    assert "No chain" in mneme("causal", "query").err


def test_what_is_discovered_is_shown_with_what_was_not(served: ScriptedServer) -> None:
    effect = DiscoveredEffect(
        cause="tag:careful", outcome="success", uplift=0.15, low=0.05, high=0.25,
        plain_difference=-0.2, q_value=0.004, mean_with=0.7, mean_without=0.55, change=1,
    )  # fmt: skip
    alike = DiscoveredEffect()
    alike.CopyFrom(effect)
    alike.outcome = "reward"
    answer = DiscoverResult(
        findings=[effect, alike], refused_causes=[{"cause": "tag:rare", "why": 1}], refused_count=1,
        episode_count=1000, adjusted_for=["task", "time"], removed_count=1,
        not_adjusted_for=[{"name": "difficulty", "why": 1}, {"name": "ticket", "why": 2}],
    )  # fmt: skip
    running = Operation(id="op", kind="discover")
    served.on("Discover", DiscoverResponse(operation=running))
    done = Operation(id="op", kind="discover", done=True, state=3)
    done.response.Pack(answer)
    served.on("WaitOperation", WaitOperationResponse(operation=done))
    result = mneme("causal", "discover", "--project", "shop", "--adjust-for", "difficulty")
    row = cells(result.lines[-1])
    assert row[:4] == ["tag:careful", "success, reward", "+0.15", "+0.05 to +0.25"]
    assert row[-1] == "created"
    assert sum("tag:careful" in line for line in result.lines) == 1
    for words in (
        "1,000 episodes", "task, time", "1 cause that too few", "1 edge no longer held",
        "Not adjusted for difficulty: all episodes have the same.",
        "Not adjusted for ticket: no value is shared by 10 episodes.",
    ):  # fmt: skip
        assert words in result.err
    question = served.last("Discover").question
    assert (question.filter.project, list(question.adjust_for)) == ("shop", ["difficulty"])
    assert not question.HasField("fdr")
    assert mneme("causal", "discover", "--no-wait").lines == ["op"]


def test_discovering_every_night_is_switched_on_shown_and_switched_off(
    served: ScriptedServer,
) -> None:
    on = {
        "enabled": True, "time": "02:30", "last_operation_id": "nightly-discovery-2026-03-01",
        "next_run_at": "2026-03-02T02:30:00Z",
        "question": {"filter": {"project": "shop", "tags": ["ci"]}, "adjust_for": ["difficulty"]},
    }  # fmt: skip
    served.on(
        "UpdateDiscoverySchedule", from_dict({"schedule": on}, UpdateDiscoveryScheduleResponse())
    )
    result = mneme(
        "causal", "nightly", "--at", "02:30", "--project", "shop", "--adjust-for", "difficulty"
    )
    out = "\n".join(result.lines)
    for words in ("at 02:30 UTC", "nightly-discovery-2026-03-01", "shop", "ci", "difficulty"):
        assert words in out
    sent = served.last("UpdateDiscoverySchedule")
    assert (sent.enabled, sent.time, sent.question.filter.project) == (True, "02:30", "shop")
    assert list(sent.question.adjust_for) == ["difficulty"]
    assert not sent.question.HasField("fdr")
    off = {"schedule": {"time": "03:00", "question": {}}}
    served.on("GetDiscoverySchedule", from_dict(off, GetDiscoveryScheduleResponse()))
    assert cells(mneme("causal", "nightly").lines[-1])[-1] == "no"
    served.on("UpdateDiscoverySchedule", from_dict(off, UpdateDiscoveryScheduleResponse()))
    assert cells(mneme("causal", "nightly", "--off").lines[-1])[-1] == "no"
    assert not served.last("UpdateDiscoverySchedule").enabled
    assert mneme("causal", "nightly", "--off", "--at", "02:30").code == 2
    assert mneme("causal", "nightly", "--project", "shop").code == 2
    for time in ("2:30", "24:00", "noon"):
        result = mneme("causal", "nightly", "--at", time)
        assert (result.code, "such as 03:00" in result.err) == (2, True)


def test_an_experiment_is_run_from_the_shell(served: ScriptedServer) -> None:
    served.on("AssignTreatment", AssignTreatmentResponse(treatment=True))
    assert mneme("experiments", "assign", "x", "ann").lines == ["treatment"]
    served.on(
        "RecordObservation",
        RecordObservationResponse(observation_id="o", treatment=True, observation_count=3),
    )
    result = mneme("experiments", "observe", "x", "1", "--control", "--context", '{"day": 1}')
    assert result.lines == ["recorded o (treatment; 3 observations now)"]
    sent = served.last("RecordObservation")
    assert (sent.outcome, sent.HasField("treatment"), sent.treatment) == (1, True, False)
    analysis = from_dict({"result": RESULT}, AnalyzeExperimentResponse())
    served.on("AnalyzeExperiment", analysis)
    result = mneme("experiments", "analyze", "x")
    out = "\n".join(result.lines)
    for words in ("20 subjects, mean 0.8", "+0.3", "+0.07 to +0.53, p = 0.0123", "-0.1 to +0.7"):
        assert words in out
    assert "Look once." in result.err
    concluded = from_dict(
        {"experiment": {"id": "x", "result": RESULT}}, ConcludeExperimentResponse()
    )
    concluded.edge.CopyFrom(edge())
    served.on("ConcludeExperiment", concluded)
    assert "Edge 01E: review → success." in mneme("experiments", "conclude", "x").err
    listed = {"experiments": [{"id": "x", "name": "Review", "status": "RUNNING"}]}
    served.on("ListExperiments", from_dict(listed, ListExperimentsResponse()))
    assert mneme("experiments", "list").lines[-1].split()[:2] == ["x", "Review"]


def test_an_update_of_an_edge_sends_the_given_fields_only(served: ScriptedServer) -> None:
    served.on("UpdateEdge", UpdateEdgeResponse(edge=edge()))
    result = mneme("causal", "update", "01E", "--uplift", "0.5", "--evidence", "", "--etag", "e")
    assert result.lines == ["updated 01E: review → success"]
    request = served.last("UpdateEdge")
    assert sorted(request.update_mask.paths) == ["evidence_ids", "uplift"]
    assert (request.edge.id, request.edge.uplift, request.edge.etag) == ("01E", 0.5, "e")


def test_an_update_of_an_experiment_sends_the_given_fields_only(served: ScriptedServer) -> None:
    served.on("UpdateExperiment", UpdateExperimentResponse())
    result = mneme("experiments", "update", "01X", "--name", "Second look", "--description", "")
    assert result.lines == ["updated 01X"]
    request = served.last("UpdateExperiment")
    assert sorted(request.update_mask.paths) == ["description", "name"]
    assert (request.experiment.id, request.experiment.name) == ("01X", "Second look")
