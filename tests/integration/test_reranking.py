"""A reranker orders the first results anew, when there is one and it is quick enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server
from unit.engine.embedding.scripted_http import Answer, Received, ScriptedServer
from unit.features.recall.reranker_models import write_cross_encoder

QUERY = "when does staging lose its data?"
TEXTS = {
    "first": "When does staging lose its data, and why does nobody know it?",
    "second": "Staging loses its data when the parrot sings.",
    "third": "The staging database is reset every night.",
    "fourth": "Production keeps its data.",
}
ANSWERS = ["third", "second", "first", "fourth"]
"""How the service orders them."""


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="module")
def reranking(
    service: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("reranking")
    with local_server(
        folder,
        reranker="http:reranker-1",
        reranker_url=f"{service.url}/rerank",
        reranker_seconds=10.0,
    ) as server:
        yield server


@pytest.fixture
def api(reranking: LocalServer, service: ScriptedServer) -> Any:
    service.received.clear()
    service.answers = [as_the_expert_would]
    api = reranking.keys.tenant()
    record(api, *(event(text, "s", id=name) for name, text in TEXTS.items()), wait=True)
    return api


def as_the_expert_would(request: Received) -> Answer:
    names = {text: name for name, text in TEXTS.items()}
    return Answer(
        body={
            "results": [
                {"index": index, "relevance_score": -ANSWERS.index(names[text])}
                for index, text in enumerate(request.body["documents"])
            ]
        }
    )


def test_the_first_results_come_in_its_order_and_keep_their_scores(
    api: Any, service: ScriptedServer
) -> None:
    before = recall(api, QUERY, rerank=False)
    assert before.reranking == recall_pb.RERANKING_UNSPECIFIED
    assert not service.received
    after = recall(api, QUERY)
    assert after.reranking == recall_pb.RERANKING_DONE
    assert ids_of(before)[0] != "third"
    assert ids_of(after) == [name for name in ANSWERS if name in ids_of(before)]
    assert {r.source_id: r.score for r in after.results} == {
        r.source_id: r.score for r in before.results
    }
    (request,) = service.received
    assert request.path == "/rerank"
    assert (request.body["model"], request.body["query"]) == ("reranker-1", QUERY)


def test_it_finds_among_the_first_fifty_what_the_limit_would_have_cut_off(api: Any) -> None:
    assert ids_of(recall(api, QUERY, limit=1)) == ["third"]
    assert recall(api, QUERY, limit=1).total_results == recall(api, QUERY).total_results


def test_min_score_means_the_order_before(api: Any) -> None:
    scores = {r.source_id: r.score for r in recall(api, QUERY, rerank=False).results}
    least = scores["second"]
    wanted = {name for name, score in scores.items() if score >= least}
    found = recall(api, QUERY, min_score=least)
    assert set(ids_of(found)) == wanted
    assert "third" not in wanted or ids_of(found)[0] == "third"


def test_what_was_said_around_a_result_is_that_of_the_results_shown(api: Any) -> None:
    (result,) = recall(api, QUERY, limit=1, context_turns=1).results
    assert [turn.source_id for turn in result.before] == ["second"]
    assert [turn.source_id for turn in result.after] == ["fourth"]


@pytest.mark.parametrize("mode", ["RECALL_MODE_DENSE", "RECALL_MODE_LEXICAL"])
def test_other_modes_are_not_reranked(mode: str, api: Any, service: ScriptedServer) -> None:
    assert recall(api, QUERY, mode=mode).reranking == recall_pb.RERANKING_UNSPECIFIED
    assert not service.received


def test_nothing_is_asked_when_nothing_was_found(api: Any, service: ScriptedServer) -> None:
    assert not recall(api, QUERY, agent_id="nobody", only_own=True).results
    assert not service.received


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts a server with these settings and records the texts in it."""
    running: list[Any] = []

    def start(**settings: Any) -> Any:
        server = local_server(tmp_path, **settings)
        api = server.__enter__().keys.tenant()
        running.append(server)
        record(api, *(event(text, "s", id=name) for name, text in TEXTS.items()), wait=True)
        return api

    yield start
    for server in running:
        server.__exit__(None, None, None)


def test_a_slow_reranker_is_not_waited_for(
    own_server: Callable[..., Any], service: ScriptedServer
) -> None:
    api = own_server(
        reranker="http:slow", reranker_url=f"{service.url}/rerank", reranker_seconds=0.1
    )
    service.answers = [Answer(body={"results": []}, delay_s=1.0)]
    late = recall(api, QUERY)
    assert late.reranking == recall_pb.RERANKING_LATE
    assert ids_of(late) == ids_of(recall(api, QUERY, rerank=False))


def test_a_reranker_that_refuses_costs_nothing_but_its_order(
    own_server: Callable[..., Any], service: ScriptedServer
) -> None:
    api = own_server(
        reranker="http:none", reranker_url=f"{service.url}/rerank", reranker_seconds=10.0
    )
    service.answers = [Answer(401, {"error": "no such key"})]
    failed = recall(api, QUERY)
    assert failed.reranking == recall_pb.RERANKING_FAILED
    assert ids_of(failed) == ids_of(recall(api, QUERY, rerank=False))


def test_an_exported_cross_encoder_reranks_without_a_service(
    own_server: Callable[..., Any], tmp_path: Path
) -> None:
    folder = write_cross_encoder(tmp_path / "counting")
    api = own_server(reranker=f"onnx:{folder}", reranker_seconds=10.0)
    answer = recall(api, "every night the staging database")
    assert answer.reranking == recall_pb.RERANKING_DONE
    assert ids_of(answer)[0] == "third"
