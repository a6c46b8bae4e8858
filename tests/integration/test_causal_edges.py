"""Cause and effect: edges, the chains they make, and memories ranked by them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import causal_pb2, memory_service_pb2
from mneme.v1 import causal_service_pb2 as pb
from support.api import Api, grpc, refused
from support.making import at, create_edge, episode, skill, struct
from support.server import LocalServer


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("causal")


def get(api: Api, edge_id: str) -> causal_pb2.CausalEdge:
    return api.causal.GetEdge(causal_pb2.GetEdgeRequest(edge_id=edge_id)).edge


def update(api: Api, edge_id: str, **fields: Any) -> causal_pb2.CausalEdge:
    request = pb.UpdateEdgeRequest(
        edge=causal_pb2.CausalEdge(id=edge_id, **fields),
        update_mask=FieldMask(paths=list(fields)),
    )
    return api.causal.UpdateEdge(request).edge


def listed(api: Api, **filter_: Any) -> list[str]:
    request = causal_pb2.ListEdgesRequest(filter=causal_pb2.EdgeFilter(**filter_), page_size=2)
    found: list[str] = []
    while True:
        page = api.causal.ListEdges(request)
        found += [one.id for one in page.edges]
        request.page_token = page.next_page_token
        if not request.page_token:
            assert page.total_size == len(found)
            return found


def query(api: Api, **fields: Any) -> causal_pb2.TraceEffectsResponse:
    return api.causal.TraceEffects(causal_pb2.TraceEffectsRequest(**fields))


def paths(answer: causal_pb2.TraceEffectsResponse) -> list[str]:
    return [" ".join([one.cause, *(e.effect for e in one.path)]) for one in answer.chains]


def test_an_edge_is_returned_as_it_was_added(api: Api) -> None:
    added = create_edge(
        api, "oauth2_strategy", "authentication_success", 0.25, edge_id="e", sample_size=40,
        evidence_ids=["a", "b", "a"], experiment_ids=["x"], confounder_score=0.1,
        mechanism="PKCE stops replay", metadata=struct(by="ann"),
    )  # fmt: skip
    assert (added.cause, added.effect) == ("oauth2_strategy", "authentication_success")
    assert (added.uplift, added.confidence, added.sample_size) == (0.25, 0.95, 40)
    assert (list(added.evidence_ids), list(added.experiment_ids)) == (["a", "b"], ["x"])
    assert (added.confounder_score, added.metadata) == (0.1, struct(by="ann"))
    assert added.origin == causal_pb2.EDGE_ORIGIN_STATED
    assert not added.HasField("low")
    assert get(api, "e") == added


def test_the_same_edge_again_changes_nothing_and_another_of_the_same_two_is_refused(
    api: Api,
) -> None:
    first = create_edge(api, "a", "b", 0.5, edge_id="e")
    assert create_edge(api, "a", "b", 0.5, edge_id="e") == first
    assert create_edge(api, "a", "b", 0.5) == first
    with refused() as failure:
        create_edge(api, "a", "b", 0.4)
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "effect")
    assert "'e'" in failure.message
    with refused() as failure:
        create_edge(api, "a", "c", 0.5, edge_id="e")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "edge_id")
    assert create_edge(api, "a", "none", 0, confidence=0).confidence == 0
    assert len(listed(api)) == 2


def test_what_is_stored_here_must_exist_to_be_a_cause_or_an_effect(api: Api) -> None:
    episode(api, "a task", episode_id="e-1")
    skill(api, "deploy", skill_id="s-1")
    api.memory.CreateMemory(
        memory_service_pb2.CreateMemoryRequest(memory_id="m-1", text="deploys are at noon")
    )
    for kind, made in (("episode", "e-1"), ("skill", "s-1"), ("memory", "m-1")):
        assert create_edge(api, f"{kind}:{made}", "success", 0.1).cause == f"{kind}:{made}"
        with refused() as failure:
            create_edge(api, "tag:anything", f"{kind}:none", 0.1)
        assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "effect")
        assert failure.message == f"there is no {kind} 'none'"


def test_a_circle_is_refused_and_named(api: Api) -> None:
    create_edge(api, "sleep", "focus", 0.3)
    create_edge(api, "focus", "code", 0.3)
    create_edge(api, "coffee", "code", 0.3)
    with refused() as failure:
        create_edge(api, "code", "sleep", 0.1, confidence=0.01)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert (failure.reason, failure.field) == ("CONSTRAINT_VIOLATION", "effect")
    assert "'code' → 'sleep' → 'focus' → 'code'" in failure.message
    with refused() as failure:
        create_edge(api, "code", "code", 0.1)
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "effect")
    create_edge(api, "code", "bugs", 0.1)


def test_an_update_changes_what_the_mask_names(api: Api) -> None:
    create_edge(api, "a", "b", 0.5, edge_id="e", mechanism="somehow", confounder_score=0.5)
    changed = update(api, "e", uplift=-0.25, metadata=struct(by="ann"))
    assert (changed.uplift, changed.mechanism) == (-0.25, "somehow")
    assert (changed.confounder_score, changed.metadata) == (0.5, struct(by="ann"))
    request = pb.UpdateEdgeRequest(
        edge=causal_pb2.CausalEdge(id="e"), update_mask=FieldMask(paths=["confounder_score"])
    )
    assert not api.causal.UpdateEdge(request).edge.HasField("confounder_score")
    with refused() as failure:
        update(api, "e", cause="c")
    assert failure.field == "update_mask"
    with refused() as failure:
        update(api, "e", confidence=2.0)
    assert failure.field == "edge.confidence"


def test_edges_are_listed_by_what_they_are_and_deleted(api: Api) -> None:
    for place, (cause, effect, confidence) in enumerate(
        [("a", "b", 0.9), ("b", "c", 0.4), ("a", "c", 0.5)]
    ):
        create_edge(api, cause, effect, 0.5, edge_id=f"e-{place}", confidence=confidence)
    assert listed(api) == ["e-2", "e-1", "e-0"]
    assert listed(api, cause="a") == ["e-2", "e-0"]
    assert listed(api, effect="c", min_confidence=0.5) == ["e-2"]
    assert listed(api, origin=causal_pb2.EDGE_ORIGIN_DISCOVERED) == []
    api.causal.DeleteEdge(causal_pb2.DeleteEdgeRequest(edge_id="e-0"))
    assert listed(api, origin=causal_pb2.EDGE_ORIGIN_STATED) == ["e-2", "e-1"]
    with refused() as failure:
        get(api, "e-0")
    assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "edge_id")
    create_edge(api, "b", "a", 0.5)


def test_effects_are_multiplied_along_chains(api: Api) -> None:
    create_edge(api, "review", "fewer_bugs", 0.5, confidence=0.9)
    create_edge(api, "fewer_bugs", "happy_users", 0.4, confidence=0.8)
    create_edge(api, "review", "late_release", 0.2, confidence=1.0)
    create_edge(api, "late_release", "happy_users", -0.6, confidence=0.5)
    answer = query(api, cause="review", effect="happy_users")
    assert paths(answer) == [
        "review fewer_bugs happy_users", "review late_release happy_users",
    ]  # fmt: skip
    good, bad = answer.chains
    assert (good.uplift, good.confidence) == (pytest.approx(0.2), pytest.approx(0.72))
    assert (bad.uplift, bad.confidence) == (pytest.approx(-0.12), pytest.approx(0.5))
    assert "nothing acts on its end but through the chain" in answer.assumption
    everything = query(api, cause="review")
    assert (everything.total_chains, paths(everything)[0]) == (4, "review fewer_bugs")
    assert paths(query(api, cause="review", limit=1)) == ["review fewer_bugs"]
    assert query(api, effect="happy_users", min_confidence=0.6).total_chains == 2
    assert query(api, effect="happy_users", min_confidence=0.6, min_uplift=0.3).total_chains == 1
    assert paths(query(api, cause="review", max_length=1)) == [
        "review fewer_bugs", "review late_release",
    ]  # fmt: skip
    assert query(api, cause="review", max_length=1).assumption == ""
    assert query(api, cause="happy_users").total_chains == 0


def test_without_a_cause_and_an_effect_the_weightiest_edges_are_found(api: Api) -> None:
    create_edge(api, "a", "b", 0.1)
    create_edge(api, "b", "c", -0.9, confidence=0.6)
    create_edge(api, "c", "d", 5, confidence=0.4)
    answer = query(api)
    assert (paths(answer), answer.total_chains) == (["b c", "a b"], 2)
    assert paths(query(api, min_confidence=0, limit=1)) == ["c d"]


def test_memories_are_reranked_by_what_edges_say_of_them(api: Api) -> None:
    for name, text in (
        ("plain", "Retry a payment that the bank refused"),
        ("helps", "Retry a payment that a bank has refused, after a minute"),
        ("harms", "Retry a payment that the bank refused at once"),
    ):
        request = memory_service_pb2.CreateMemoryRequest(memory_id=name, text=text, since=at(0))
        api.memory.CreateMemory(request)
    create_edge(api, "memory:helps", "success", 0.9)
    create_edge(api, "memory:helps", "reward", -1, confidence=0.49)
    create_edge(api, "memory:harms", "success", -700)
    asked = memory_service_pb2.SearchMemoriesRequest(query="Retry a payment that the bank refused")
    plain = api.memory.SearchMemories(asked)
    assert plain.results[0].memory.id == "plain"
    assert (plain.rerank_ms, plain.results[0].HasField("score")) == (0, False)
    asked.rerank = True
    answer = api.memory.SearchMemories(asked)
    assert [one.memory.id for one in answer.results] == ["helps", "plain", "harms"]
    helps, other, harms = answer.results
    assert (helps.causal_uplift, other.HasField("causal_uplift")) == (0.9, False)
    assert helps.score == pytest.approx(0.7 * helps.similarity + 0.3 * 0.9)
    assert other.score == pytest.approx(0.7 * other.similarity)
    assert harms.causal_uplift == -700
    assert harms.score == pytest.approx(0.7 * harms.similarity - 0.3)
    assert answer.rerank_ms > 0
    asked.limit = 1
    assert [one.memory.id for one in api.memory.SearchMemories(asked).results] == ["helps"]
