"""Streams that stay open: how many, and how they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest
import structlog
from grpc_reflection.v1alpha import reflection_pb2
from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme_server.common.errors import ResourceExhausted
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc import server as server_module
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.interceptors import streams as streams_module
from mneme_server.edge.grpc.interceptors.access import TokenBuckets
from mneme_server.edge.grpc.interceptors.streams import StreamSlots
from mneme_server.edge.grpc.methods import StreamKind, methods_of
from mneme_server.edge.grpc.shared_counts import SharedCounts
from support.folders import wait_until
from support.sources import Given
from unit.edge.grpc.edge import SERVICES, Client, Edge

WATCH = "EventService/WatchEvents"
STREAM = "EventService/StreamEvents"
EXPORT = "LearnService/ExportLessons"
GET = "EventService/GetSession"
REQUEST = pb.GetSessionRequest(session_id="s")
EVENT = pb.StreamEventsRequest(event=pb.NewEvent(session_id="s", event_type="message", text="x"))


class Watching:
    """A WatchEvents that says it began and stays open until it must end."""

    def __init__(self, edge: Edge) -> None:
        self.sources: list[Given] = []
        edge.on(WATCH, self._behave)

    def _behave(self, request: Any, call: Call) -> Given:
        source = Given(pb.WatchEventsResponse(cursor="0"))
        self.sources.append(source)
        return source


def _begun(stream: Any) -> Any:
    assert next(stream).cursor == "0"
    return stream


def test_streams_beyond_the_cap_are_refused_and_other_calls_are_served(
    edge: Edge, client: Client
) -> None:
    Watching(edge)
    streams = [_begun(client.open(WATCH)) for _ in range(2)]
    refusal = client.refusal(WATCH)
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_STREAMS",
    )
    assert refusal.has_retry
    client.call(GET, REQUEST)
    client.call(STREAM, iter([EVENT]))
    for stream in streams:
        stream.cancel()


def test_a_stream_whose_caller_leaves_frees_its_seat(edge: Edge, client: Client) -> None:
    watching = Watching(edge)
    for _ in range(5):
        streams = [_begun(client.open(WATCH)) for _ in range(2)]
        for stream in streams:
            stream.cancel()
        for source in watching.sources[-2:]:
            assert source.closed.wait(10)
        assert edge.server is not None
        wait_until(lambda: edge.server.streams.open_streams == 0, "the seats are free")


def test_a_stream_that_no_thread_can_be_had_for_is_refused_for_now_and_frees_its_seat(
    edge: Edge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching, start = Watching(edge), threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if thread.name == "steps":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as without_memory:
        without_memory.setattr(threading.Thread, "start", scarce)
        refusal = client.refusal(WATCH)
    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refusal.has_retry
    (source,) = watching.sources
    assert source.closed.is_set()
    assert edge.server is not None
    assert edge.server.streams.open_streams == 0
    _begun(client.open(WATCH)).cancel()


def test_a_tenant_gets_half_of_the_seats_and_leaves_the_others_to_others(
    edge: Edge, client: Client
) -> None:
    Watching(edge)
    other = edge.client(edge.key("other").secret)
    streams = [_begun(c.open(WATCH)) for c in (client, client, other)]
    refusal = client.refusal(WATCH)
    assert refusal.reason == "TOO_MANY_STREAMS"
    assert "a tenant may have 2 long-lived streams" in refusal.message
    streams.append(_begun(other.open(WATCH)))
    third = edge.client(edge.key("third").secret).refusal(WATCH)
    assert "the server serves 4 long-lived streams" in third.message
    for stream in streams:
        stream.cancel()


def test_an_export_needs_none_of_the_seats_of_watchers(edge: Edge, client: Client) -> None:
    Watching(edge)
    other = edge.client(edge.key("other").secret)
    streams = [_begun(c.open(WATCH)) for c in (client, client, other, other)]
    client.call(EXPORT)
    for stream in streams:
        stream.cancel()


def test_an_export_that_ends_while_the_server_drains_ends_well(edge: Edge, client: Client) -> None:
    may_end = threading.Event()

    def export(request: Any, call: Call) -> Iterator[Any]:
        yield learn_pb.ExportLessonsResponse()
        assert may_end.wait(10)
        yield learn_pb.ExportLessonsResponse()

    edge.on(EXPORT, export)
    stream = client.open(EXPORT)
    next(stream)
    assert edge.server is not None
    stopping = threading.Thread(target=edge.server.stop, args=(10,))
    stopping.start()
    while client.code(GET, REQUEST) is grpc.StatusCode.OK:  # It drains once it refuses calls.
        pass
    may_end.set()
    assert len(list(stream)) == 1
    assert stream.code() is grpc.StatusCode.OK
    stopping.join(10)


def test_a_watch_that_has_nothing_more_to_say_ends_well(edge: Edge, client: Client) -> None:
    edge.on(WATCH, lambda request, call: Given(pb.WatchEventsResponse(cursor="0"), ends=True))
    stream = _begun(client.open(WATCH))
    assert list(stream) == []
    assert stream.code() is grpc.StatusCode.OK


def _reflections(edge: Edge, count: int) -> list[Any]:
    reflect = edge.channel().stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    open_ = threading.Event()

    def ask() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        open_.wait(30)

    return [reflect(ask(), timeout=20) for _ in range(count)]


def test_callers_without_a_key_take_no_seats_of_tenants(edge: Edge, client: Client) -> None:
    opened = _reflections(edge, 20)
    refusals: list[Any] = []
    for stream in opened:
        try:
            next(stream)
        except grpc.RpcError as error:
            refusals.append(error)
    assert 0 < len(opened) - len(refusals) <= 3
    assert {error.code() for error in refusals} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    client.call(STREAM, iter([EVENT]))
    client.call(GET, REQUEST)
    for stream in opened:
        stream.cancel()


def test_a_stream_without_a_key_is_cut_off_in_time(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "_PUBLIC_S", 1.0)
    (stream,) = _reflections(edge, 1)
    next(stream)
    with pytest.raises(grpc.RpcError) as ended:
        next(stream)
    assert ended.value.code() is grpc.StatusCode.CANCELLED


class Uploading:
    """A client stream that stays open until the test ends it."""

    def __init__(self) -> None:
        self._items: queue.Queue[pb.StreamEventsRequest | None] = queue.Queue()
        self._items.put(EVENT)

    def __iter__(self) -> Iterator[pb.StreamEventsRequest]:
        while (item := self._items.get()) is not None:
            yield item

    def finish(self) -> None:
        self._items.put(None)


def test_uploads_have_seats_of_their_own(edge: Edge, client: Client) -> None:
    Watching(edge)
    arrived = threading.Semaphore(0)

    def receive(requests: Iterator[Any], call: Call) -> Any:
        count = 0
        for _ in requests:
            arrived.release()
            count += 1
        yield pb.StreamEventsResponse(recorded_count=count)

    edge.on(STREAM, receive)
    channel = edge.channel()
    stub = channel.stream_stream(
        "/mneme.v1.EventService/StreamEvents",
        request_serializer=pb.StreamEventsRequest.SerializeToString,
        response_deserializer=pb.StreamEventsResponse.FromString,
    )
    metadata = (("authorization", f"Bearer {edge.key().secret}"),)
    uploads = [Uploading(), Uploading()]
    answers = [stub(iter(upload), metadata=metadata) for upload in uploads]
    for _ in uploads:
        assert arrived.acquire(timeout=10)
    refusal = client.refusal(STREAM, iter([EVENT]))
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_STREAMS",
    )
    watch = _begun(client.open(WATCH))
    client.call(GET, REQUEST)
    for upload in uploads:
        upload.finish()
    assert [next(answer).recorded_count for answer in answers] == [1, 1]
    watch.cancel()


def test_shutting_down_ends_streams_with_a_reason_and_waits_for_calls_in_flight(
    edge: Edge, client: Client
) -> None:
    Watching(edge)
    began, may_end = threading.Event(), threading.Event()

    def slow(request: Any, call: Call) -> Any:
        began.set()
        assert may_end.wait(10)
        return pb.GetSessionResponse(session=pb.Session(id="finished"))

    edge.on(GET, slow)
    stream = _begun(client.open(WATCH))
    answers: list[Any] = []
    caller = threading.Thread(target=lambda: answers.append(client.call(GET, REQUEST)))
    caller.start()
    assert began.wait(10)
    assert edge.server is not None
    stopping = threading.Thread(target=edge.server.stop, args=(10,))
    stopping.start()
    with pytest.raises(grpc.RpcError) as ended:
        next(stream)
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in str(ended.value.details())
    assert stopping.is_alive()
    may_end.set()
    caller.join(10)
    stopping.join(10)
    assert [answer.session.id for answer in answers] == ["finished"]
    assert not stopping.is_alive()


def test_a_call_that_outlasts_the_drain_is_cut_off(edge: Edge, client: Client) -> None:
    began, may_end = threading.Event(), threading.Event()

    def stuck(request: Any, call: Call) -> Any:
        began.set()
        may_end.wait(10)
        return pb.GetSessionResponse()

    edge.on(GET, stuck)
    codes: list[Any] = []
    caller = threading.Thread(target=lambda: codes.append(client.refusal(GET, REQUEST).code))
    caller.start()
    assert began.wait(10)
    assert edge.server is not None
    stopping = threading.Thread(target=edge.server.stop, args=(0.1,))
    stopping.start()
    caller.join(10)
    assert codes == [grpc.StatusCode.UNAVAILABLE]
    may_end.set()
    stopping.join(10)
    assert not stopping.is_alive()


def test_a_call_that_never_notices_its_end_does_not_hold_up_the_shutdown(
    edge: Edge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_GRACE_S", 0.1)
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def stuck(request: Any, call: Call) -> Any:
        began.set()
        may_end.wait(20)
        ended.set()
        return pb.GetSessionResponse()

    edge.on(GET, stuck)
    caller = threading.Thread(target=client.code, args=(GET, REQUEST))
    caller.start()
    assert began.wait(10)
    assert edge.server is not None
    with structlog.testing.capture_logs() as logged:
        edge.server.stop(0.1)
    assert not ended.is_set()
    (warning,) = [line for line in logged if line["log_level"] == "warning"]
    assert warning["methods"] == ["/mneme.v1.EventService/GetSession"]
    may_end.set()
    caller.join(10)


class Context:
    """As much of gRPC's context as the end of a call needs."""

    def __init__(self, *, active: bool = True) -> None:
        self.active = active
        self.callbacks: list[Any] = []

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def add_callback(self, callback: Any) -> bool:
        if self.active:
            self.callbacks.append(callback)
        return self.active


def _call(context: Context) -> Call:
    methods = methods_of([SERVICES["RecallService"]])
    method = methods["/mneme.v1.RecallService/Recall"]
    return Call(method, cast(grpc.ServicerContext, context))


def test_callbacks_run_once_however_often_the_call_ends() -> None:
    context = Context()
    call = _call(context)
    ran: list[str] = []
    call.on_end(lambda: ran.append("first"))
    call.on_end(lambda: ran.append("second"))
    assert ran == []
    context.callbacks[0]()
    call.end()
    assert ran == ["first", "second"]


def test_a_callback_given_after_the_end_runs_at_once() -> None:
    ran: list[str] = []
    ended = _call(Context())
    ended.end()
    ended.on_end(lambda: ran.append("ended by the server"))
    _call(Context(active=False)).on_end(lambda: ran.append("left by the caller"))
    assert ran == ["ended by the server", "left by the caller"]


class _OfTenant:
    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id


def test_the_watches_of_a_tenant_on_other_servers_count_until_they_end() -> None:
    def slots() -> StreamSlots:
        return StreamSlots(dict.fromkeys(StreamKind, 10), Watchdog(), tenant_watches=2)

    def call(tenant_id: str) -> Call:
        return cast(Call, _OfTenant(tenant_id))

    here, there = slots(), slots()
    shared = SharedCounts(TokenBuckets(), here), SharedCounts(TokenBuckets(), there)
    mine = call("acme")
    here._sit(StreamKind.WATCH, mine)
    there._sit(StreamKind.WATCH, call("acme"))
    shared[1].heard({"here": shared[0].report()})
    with pytest.raises(ResourceExhausted):
        there._sit(StreamKind.WATCH, call("acme"))
    there._sit(StreamKind.WATCH, call("rival"))
    there._sit(StreamKind.DOWNLOAD, call("acme"))
    here._open[StreamKind.WATCH].discard(mine)
    shared[1].heard({"here": shared[0].report()})
    there._sit(StreamKind.WATCH, call("acme"))
    shared[1].heard({})
