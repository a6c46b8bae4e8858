"""A slow embedding backend slows what needs it, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import grpc
import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.engine import runtime as memories
from support.api import Api, failure_of, refused
from support.making import event, recall, record
from support.server import LocalServer, local_server
from support.stuck import Stuck

pytestmark = pytest.mark.slow

DENSE = recall_pb.RECALL_MODE_DENSE
"""A question for the meaning alone cannot do without its vector, and waits."""


@pytest.fixture
def stuck() -> Stuck:
    return Stuck()


@pytest.fixture
def server(stuck: Stuck, tmp_path: Path) -> Iterator[LocalServer]:
    with (
        mock.patch.object(memories, "_embedder", return_value=stuck),
        local_server(tmp_path / "data", workers=16, max_streams=4, max_uploads=4) as server,
    ):
        yield server
        stuck.answers.set()


_EACH = 10


def callers(server: LocalServer, api: Api) -> list[Api]:
    """Four connections: one alone would have its streams near their limit."""
    return [server.keys.key(api.tenant_id) for _ in range(4)]


def question(number: int) -> recall_pb.RecallRequest:
    return recall_pb.RecallRequest(query=f"q {number}", mode=DENSE)


def test_calls_that_need_no_embedding_are_served_while_all_others_wait(
    server: LocalServer, stuck: Stuck
) -> None:
    api = server.keys.tenant()
    record(api, event("hello"))
    running = [
        caller.recall.Recall.future(question(n), timeout=30)
        for caller in callers(server, api)
        for n in range(_EACH)
    ]
    refused = threading.Event()
    for call in running:
        call.add_done_callback(lambda _: refused.set())
    assert refused.wait(20)
    record(api, event("served all the same"))
    assert any(call.is_active() for call in running)
    stuck.answers.set()
    outcomes = [call.exception() for call in running]
    failures = [failure_of(error) for error in outcomes if isinstance(error, grpc.RpcError)]
    assert failures
    for failure in failures:
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.UNAVAILABLE,
            "EMBEDDING_FAILED",
        )
        assert failure.retry_after_s == 1.0
    assert None in outcomes


def test_recalls_that_nobody_waits_for_any_more_hold_no_worker(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("hello"))
    gone = [
        caller.recall.Recall.future(
            recall_pb.RecallRequest(query=f"q {n}", mode=DENSE), timeout=0.3
        )
        for caller in callers(server, api)
        for n in range(_EACH)
    ]
    for call in gone:
        error = call.exception()
        assert isinstance(error, grpc.RpcError)
        assert error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
    record(api, event("served at once"))


def test_callers_that_leave_while_they_wait_for_the_index_free_their_workers(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    request = events_pb.RecordEventsRequest(events=[event("hello")], wait_indexed=True)
    probe = events_pb.ListEventsRequest()
    waiting = []
    with refused() as failure:
        for _ in range(16):  # Until all the workers are held that one tenant may hold.
            waiting.append(api.events.RecordEvents.future(request))
            api.events.ListEvents(probe, timeout=0.5)
    assert failure.code in (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
    for call in waiting:
        call.cancel()
    api.events.ListEvents(probe, timeout=20)


def test_words_alone_have_a_confidence_and_the_cosines_of_an_unknown_model_have_none(
    server: LocalServer, stuck: Stuck
) -> None:
    api = server.keys.tenant()
    record(api, event("error AUTH_4412 in the login service"))
    answer = recall(api, "AUTH_4412")
    assert answer.words_only
    assert answer.confidence >= 0.5
    stuck.answers.set()
    record(api, event("the clock of the login service is right again"), wait=True)
    answer = recall(api, "AUTH_4412", mode=DENSE, min_confidence=1)
    assert answer.results
    assert not answer.HasField("confidence")
