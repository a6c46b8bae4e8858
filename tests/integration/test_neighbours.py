"""One tenant's flood does not keep another's calls from being answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import grpc
import numpy as np
import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from mneme_server.common import deadline
from mneme_server.engine import runtime as memories
from mneme_server.engine.corpus.cache import AT_ONCE, CorpusChange, ManagedIndex
from mneme_server.engine.corpus.live_index import LiveIndex
from mneme_server.features.learn import lessons as learning_lessons
from numpy.typing import NDArray
from support.contexts import eventually
from support.making import event, list_events, recall, record
from support.server import LocalServer, local_server

LONG_QUESTION = "why did the deployment of the billing service fail again " * 60
WAIT_S = 30


class StuckOnLongTexts:
    """An embedder that answers long texts only when a test lets it, and the others at once."""

    model_id = "stuck-on-long-texts"
    dimensions = 4

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.stuck = threading.Event()
        self.long_texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(len(text) > 1_000 for text in texts):
            self.long_texts += len(texts)
            self.stuck.set()
            assert self.answers.wait(60)
        return np.eye(4, dtype=np.float32)[[0] * len(texts)]

    def close(self) -> None:
        self.answers.set()


@pytest.fixture
def embedder() -> StuckOnLongTexts:
    return StuckOnLongTexts()


@pytest.fixture
def server(embedder: StuckOnLongTexts, tmp_path: Path) -> Iterator[LocalServer]:
    with (
        mock.patch.object(memories, "_embedder", return_value=embedder),
        local_server(tmp_path / "data", workers=16, max_streams=4, max_uploads=4) as server,
    ):
        yield server
        embedder.answers.set()


def test_a_calm_tenant_is_answered_while_anothers_long_questions_fill_the_server(
    server: LocalServer, embedder: StuckOnLongTexts
) -> None:
    busy, calm = server.keys.tenant("busy"), server.keys.tenant("calm")
    for api in (busy, calm):
        record(api, event("the deployment failed"), wait=True)
    questions = [
        busy.recall.Recall.future(
            recall_pb.RecallRequest(query=f"{n} {LONG_QUESTION}", mode=recall_pb.RECALL_MODE_DENSE),
            timeout=WAIT_S,
        )
        for n in range(100)
    ]
    assert embedder.stuck.wait(WAIT_S)
    for number in range(5):
        assert recall(calm, f"deployment {number}", mode=recall_pb.RECALL_MODE_DENSE).results
        record(calm, event(f"all is well {number}"), wait=True)
    assert any(question.is_active() for question in questions)
    for question in questions:
        question.cancel()


def test_a_calm_tenant_is_answered_while_anothers_large_batches_wait_for_its_database(
    server: LocalServer,
) -> None:
    busy, calm = server.keys.tenant("busy"), server.keys.tenant("calm")
    for api in (busy, calm):
        record(api, event("hello"), wait=True)
    with server.application.runtime.tenants.open(busy.tenant_id) as tenant, tenant.write():
        batches = [
            busy.events.RecordEvents.future(batch_of(500), timeout=WAIT_S) for _ in range(30)
        ]
        for _ in range(3):
            record(calm, *(event(f"event {n}") for n in range(500)))
            assert recall(calm, "hello").results
        assert not any(batch.done() for batch in batches)
    for batch in batches:
        assert batch.result(WAIT_S).recorded_count == 500


def test_a_batch_whose_caller_left_while_it_waited_is_not_recorded(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, event("hello"))
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.write():
        leaving = api.events.RecordEvents.future(batch_of(500), timeout=0.3)
        with pytest.raises(grpc.RpcError):
            leaving.result()
    record(api, event("hello again"))
    assert [one.text for one in list_events(api)] == ["hello", "hello again"]


def test_a_batch_whose_caller_left_before_it_was_indexed_is_found_all_the_same(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    record(api, event("hello"))
    called = threading.Event()
    apply = LiveIndex.apply

    def apply_when_the_caller_has_left(
        index: LiveIndex[ManagedIndex], change: CorpusChange
    ) -> None:
        if len(change.saved) > AT_ONCE:
            assert called.wait(WAIT_S)
            leaving.cancel()
            eventually(deadline.time_left, lambda left: left == 0)
        apply(index, change)

    with mock.patch.object(LiveIndex, "apply", apply_when_the_caller_has_left):
        leaving = api.events.RecordEvents.future(batch_of(500))
        called.set()
        with pytest.raises(grpc.FutureCancelledError):
            leaving.result(WAIT_S)
        eventually(lambda: recall(api, "hello").searched_count, lambda found: found == 501)
    with server.application.runtime.tenants.open(api.tenant_id) as tenant:
        assert not tenant.index.partial


def test_lessons_whose_caller_left_while_they_waited_are_not_brought_in(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    record(api, event("hello"))
    lessons = [learn_pb.Lesson(id="l1", title="Ports", content="Use port 0 in tests.")]
    check = deadline.check

    def check_when_the_caller_has_left() -> None:
        # To the server a call's time is up somewhat later than to its caller.
        eventually(deadline.time_left, lambda left: left == 0)
        check()

    with mock.patch.object(learning_lessons, "deadline") as of_lessons:
        of_lessons.check = check_when_the_caller_has_left
        with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.write():
            leaving = api.learn.ImportLessons.future(
                learn_pb.ImportLessonsRequest(lessons=lessons), timeout=0.3
            )
            with pytest.raises(grpc.RpcError) as refused:
                leaving.result()
            assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        record(api, event("hello again"))
    assert not api.learn.ListLessons(learn_pb.ListLessonsRequest()).lessons


def batch_of(count: int) -> events_pb.RecordEventsRequest:
    """Return a request that records so many events."""
    return events_pb.RecordEventsRequest(events=[event(f"event {n}") for n in range(count)])


def test_what_a_caller_asked_who_has_left_is_not_embedded(
    server: LocalServer, embedder: StuckOnLongTexts
) -> None:
    busy = server.keys.tenant("busy")
    record(busy, event("hello"), wait=True)
    questions = [
        busy.recall.Recall.future(
            recall_pb.RecallRequest(query=f"{n} {LONG_QUESTION}", mode=recall_pb.RECALL_MODE_DENSE)
        )
        for n in range(12)
    ]
    assert embedder.stuck.wait(WAIT_S)
    for question in questions:
        question.cancel()
    batcher = server.application.runtime._batcher
    eventually(lambda: batcher.queued, lambda queued: not queued)
    embedder.answers.set()
    recall(busy, f"once more: {LONG_QUESTION}", mode=recall_pb.RECALL_MODE_DENSE)
    assert embedder.long_texts <= 6


def test_a_tenant_that_opens_slowly_delays_no_others_calls_nor_what_waits_for_its_embedding(
    tmp_path: Path,
) -> None:
    may_open = threading.Event()

    def opening(tenant_id: str) -> object:
        assert not tenant_id.startswith("slow") or may_open.wait(WAIT_S)
        return opened(tenant_id)

    with local_server(tmp_path / "data", workers=8, max_uploads=4) as server:
        slow, calm = server.keys.tenant("slow"), server.keys.tenant("calm")
        registry = server.application.runtime.tenants
        opened = registry._opener
        with mock.patch.object(registry, "_opener", opening):
            analysis = reflect_pb.ReflectRequest(analysis=reflect_pb.ANALYSIS_ERROR_PATTERNS)
            waiting = [slow.reflect.Reflect.future(analysis, timeout=WAIT_S) for _ in range(3)]
            waiting += [
                slow.events.GetSession.future(
                    events_pb.GetSessionRequest(session_id="s"), timeout=WAIT_S
                )
                for _ in range(10)
            ]
            watch = slow.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=WAIT_S)
            server.application.runtime.pipeline.wake(slow.tenant_id)
            with pytest.raises(grpc.RpcError) as late:
                slow.events.GetSession(events_pb.GetSessionRequest(session_id="s"), timeout=0.3)
            assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            record(calm, event("the deployment failed"), wait=True)
            assert recall(calm, "what failed?", mode=recall_pb.RECALL_MODE_DENSE).results
            calm.reflect.Reflect(analysis, timeout=WAIT_S)
            assert not any(call.done() for call in waiting)
            may_open.set()
            for call in waiting[:3]:
                call.result(WAIT_S)
            assert not next(watch).HasField("event")
            watch.cancel()
