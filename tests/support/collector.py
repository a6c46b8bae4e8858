"""A collector of OpenTelemetry's, over HTTP and over gRPC, that keeps the spans that it got."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.receiver import Receiver, receiving

_PATIENCE_S = 60.0


class Spans:
    """What was exported, however it came."""

    def __init__(self, url: str, requests: Callable[[], Sequence[ExportTraceServiceRequest]]):
        self.url = url
        self.requests = requests

    @property
    def all(self) -> list[Span]:
        return [
            span
            for request in self.requests()
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def of(self, trace_id: str) -> dict[str, Span]:
        """The spans of a trace, by name."""
        return {span.name: span for span in self.all if span.trace_id.hex() == trace_id}

    def until(self, trace_id: str, *names: str) -> dict[str, Span]:
        """Wait until a trace has spans of these names, and return them all."""
        given_up = time.monotonic() + _PATIENCE_S
        while not set(names) <= set(found := self.of(trace_id)):
            assert time.monotonic() < given_up, f"only {sorted(found)} came"
            time.sleep(0.02)
        return found

    def first(self, is_one: Callable[[Span], bool]) -> Span:
        """Wait for the first span that is such a one."""
        given_up = time.monotonic() + _PATIENCE_S
        while (found := next((one for one in self.all if is_one(one)), None)) is None:
            assert time.monotonic() < given_up, f"only {[one.name for one in self.all]} came"
            time.sleep(0.02)
        return found


def attributes(span: Span) -> Mapping[str, Any]:
    """What a span tells."""
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in span.attributes
    }


@contextmanager
def collecting() -> Iterator[Spans]:
    """Collect over HTTP for the block."""
    with receiving(statuses=(200,)) as receiver:
        yield Spans(receiver.url, lambda: _received(receiver))


@contextmanager
def collecting_by_grpc() -> Iterator[Spans]:
    """Collect over gRPC for the block."""
    got: list[ExportTraceServiceRequest] = []

    class Servicer(TraceServiceServicer):
        def Export(self, request: ExportTraceServiceRequest, context: Any) -> Any:
            got.append(request)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield Spans(f"http://127.0.0.1:{port}", lambda: list(got))
    finally:
        server.stop(None).wait()


def _received(receiver: Receiver) -> list[ExportTraceServiceRequest]:
    return [
        ExportTraceServiceRequest.FromString(got.body)
        for got in list(receiver.got)
        if got.path == "/v1/traces"
    ]
