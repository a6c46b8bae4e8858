"""Spans as instrumented agents send them, and how to send them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

START_NS = 1_790_000_000_000_000_000
_S = 1_000_000_000


def any_value(value: Any) -> AnyValue:
    """A value as OTLP holds it; lists and objects as JSON text, as most instrumentations do."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value if isinstance(value, str) else json.dumps(value))


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(
    number: int, attributes: Mapping[str, Any], *, trace: int = 1, parent: int = 0, **fields: Any
) -> Span:
    """A span that begins `number` seconds after the first one and takes half a second."""
    start = START_NS + number * _S
    return Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=fields.pop("name", f"span {number}"),
        start_time_unix_nano=start,
        end_time_unix_nano=start + _S // 2,
        attributes=pairs(attributes),
        **fields,
    )


def failed(message: str) -> Status:
    return Status(code=Status.STATUS_CODE_ERROR, message=message)


def request(
    spans: Sequence[Span], service: str = "shop-agent"
) -> trace_pb.ExportTraceServiceRequest:
    return trace_pb.ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=pairs({"service.name": service})),
                scope_spans=[ScopeSpans(spans=spans)],
            )
        ]
    )


def with_bytes_for_spans(spans: Sequence[bytes]) -> bytes:
    """The bytes of a request whose spans are these, whatever they are."""

    def field(value: bytes, number: int) -> bytes:
        size, count = b"", len(value)
        while count > 0x7F:
            size, count = size + bytes([count & 0x7F | 0x80]), count >> 7
        return bytes([number << 3 | 2]) + size + bytes([count]) + value

    scope = b"".join(field(one, 2) for one in spans)
    return field(field(scope, 2), 1)


class Exporter:
    """Exports to a server with a key, as an OpenTelemetry exporter does."""

    def __init__(self, address: str, secret: str | None) -> None:
        self._channel = grpc.insecure_channel(address)
        self._metadata = [("authorization", f"Bearer {secret}")] if secret else []

    def spans(self, *spans: Span) -> trace_pb.ExportTraceServiceResponse:
        return TraceServiceStub(self._channel).Export(
            request(spans), metadata=self._metadata, timeout=60
        )

    def logs(self, given: logs_pb.ExportLogsServiceRequest) -> logs_pb.ExportLogsServiceResponse:
        return LogsServiceStub(self._channel).Export(given, metadata=self._metadata, timeout=60)

    def metrics(self) -> metrics_pb.ExportMetricsServiceResponse:
        return MetricsServiceStub(self._channel).Export(
            metrics_pb.ExportMetricsServiceRequest(), metadata=self._metadata, timeout=60
        )

    def close(self) -> None:
        self._channel.close()


__all__ = [
    "START_NS",
    "Exporter",
    "any_value",
    "failed",
    "pairs",
    "request",
    "span",
    "with_bytes_for_spans",
]
