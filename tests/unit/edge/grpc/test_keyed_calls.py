"""What becomes of calls whose key is good no longer, whatever kind they are of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import mock

import grpc
import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme_server.common import deadline
from mneme_server.common.errors import Unauthenticated
from mneme_server.common.identity import ALL_SCOPES, Caller, KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.interceptors.access import GRACE_S, KeyedCalls
from mneme_server.edge.grpc.methods import methods_of
from unit.edge.grpc.edge import SERVICES, Edge, Refusal

METHODS = methods_of(SERVICES.values())
EXPORT = "LearnService/ExportLessons"
GET = "EventService/GetSession"
END = "EventService/EndSession"
ENDED = pb.EndSessionRequest(session_id="s", status=pb.SESSION_STATUS_COMPLETED)


def judged(edge: Edge, key_id: str, caller: Caller | None) -> None:
    assert edge.server is not None
    assert key_id in edge.server.keyed.keys_in_use()
    edge.server.keyed.judge({key_id: caller})


def test_an_export_ends_at_its_next_message(edge: Edge) -> None:
    go_on = threading.Event()

    def export(request: Any, call: Call) -> Iterator[learn_pb.ExportLessonsResponse]:
        yield learn_pb.ExportLessonsResponse()
        go_on.wait(10)
        yield learn_pb.ExportLessonsResponse()

    edge.on(EXPORT, export)
    key = edge.key()
    stream = edge.client(key.secret).open(EXPORT)
    next(stream)
    judged(edge, key.key.id, None)
    go_on.set()
    with pytest.raises(grpc.RpcError) as refused:
        next(stream)
    assert Refusal(refused.value).code is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("path", "request_", "code"),
    [
        (GET, pb.GetSessionRequest(session_id="s"), grpc.StatusCode.UNAUTHENTICATED),
        (END, ENDED, grpc.StatusCode.OK),
    ],
    ids=["reads", "writes"],
)
def test_what_reads_is_not_answered_any_more_and_what_wrote_is_told_so(
    path: str, request_: Any, code: grpc.StatusCode, edge: Edge
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def serve(request: Any, call: Call) -> Any:
        begun.set()
        go_on.wait(10)
        return getattr(pb, f"{path.rpartition('/')[2]}Response")()

    edge.on(path, serve)
    key = edge.key()
    seen: list[grpc.StatusCode] = []
    client = edge.client(key.secret)
    calling = threading.Thread(target=lambda: seen.append(client.code(path, request_)))
    calling.start()
    assert begun.wait(10)
    judged(edge, key.key.id, None)
    go_on.set()
    calling.join(10)
    assert seen == [code]


def test_what_waits_on_a_calls_behalf_has_no_time_left(edge: Edge) -> None:
    begun, go_on = threading.Event(), threading.Event()
    left: list[float | None] = []

    def serve(request: Any, call: Call) -> Any:
        begun.set()
        go_on.wait(10)
        left.append(deadline.time_left())
        deadline.check()

    edge.on(END, serve)
    key = edge.key()
    seen: list[grpc.StatusCode] = []
    client = edge.client(key.secret)
    calling = threading.Thread(target=lambda: seen.append(client.code(END, ENDED)))
    calling.start()
    assert begun.wait(10)
    judged(edge, key.key.id, None)
    go_on.set()
    calling.join(10)
    assert (left, seen) == ([0.0], [grpc.StatusCode.UNAUTHENTICATED])


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (None, grpc.StatusCode.UNAUTHENTICATED),
        (Caller("default", "k", frozenset({KeyScope.WRITE}), 0), grpc.StatusCode.PERMISSION_DENIED),
        (Caller("default", "k", frozenset({KeyScope.READ}), 0), grpc.StatusCode.OK),
    ],
    ids=["revoked", "lost its scope", "lost another scope"],
)
def test_a_call_ends_as_a_new_one_would(
    now: Caller | None, code: grpc.StatusCode, edge: Edge
) -> None:
    go_on = threading.Event()

    def export(request: Any, call: Call) -> Iterator[learn_pb.ExportLessonsResponse]:
        yield learn_pb.ExportLessonsResponse()
        go_on.wait(10)
        yield learn_pb.ExportLessonsResponse()

    edge.on(EXPORT, export)
    key = edge.key(scopes=ALL_SCOPES)
    stream = edge.client(key.secret).open(EXPORT)
    next(stream)
    judged(edge, key.key.id, now)
    go_on.set()
    with suppress(grpc.RpcError):
        list(stream)
    assert stream.code() is code


def test_a_stream_that_does_not_end_when_it_is_told_to_is_cut_off() -> None:
    times = [0.0]
    calls = KeyedCalls(lambda: times[0])
    edge = mock.Mock()
    edge.invocation_metadata.return_value = ()
    call = Call(METHODS[f"/mneme.v1.{EXPORT}"], edge)
    call.caller = Caller("default", "k", ALL_SCOPES, 0)
    entered = calls.layer(call)
    entered.__enter__()
    calls.judge({"k": None})
    assert not edge.cancel.called
    times[0] = GRACE_S
    calls.judge({"k": None})
    assert edge.cancel.called
    with pytest.raises(Unauthenticated):
        entered.__exit__(None, None, None)
    assert not calls.keys_in_use()
