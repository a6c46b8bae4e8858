"""Translation between OpenTelemetry's messages and the domain."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from mneme_server.common.canonical import Json
from mneme_server.features.otlp.conversation import MAX_DEPTH, clean, clean_text
from mneme_server.features.otlp.model import Note, TelemetrySpan
from mneme_server.features.otlp.vocabulary import DETAIL_EVENTS, MESSAGE_EVENTS, PREFIXES

_SERVICE = "service.name"
_EVENT_NAME = "event.name"
_NAME = 500
_NS_PER_US = 1_000
_NOTES = frozenset({"exception", *MESSAGE_EVENTS, *DETAIL_EVENTS})


def spans_of(request: ExportTraceServiceRequest) -> Iterator[TelemetrySpan]:
    """Yield the spans of a request."""
    for resource in request.resource_spans:
        service = _service(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _span(span, service)


def logs_of(request: ExportLogsServiceRequest) -> Iterator[TelemetrySpan]:
    """Yield the log records of a request."""
    for resource in request.resource_logs:
        service = _service(resource.resource.attributes)
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield _log(record, service)


def _span(span: SpanMessage, service: str) -> TelemetrySpan:
    return TelemetrySpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=clean_text(span.name, _NAME),
        start_us=span.start_time_unix_nano // _NS_PER_US,
        end_us=span.end_time_unix_nano // _NS_PER_US,
        attributes=_attributes(span.attributes),
        notes=tuple(
            Note(
                event.name,
                event.time_unix_nano // _NS_PER_US,
                {pair.key: _value(pair.value, MAX_DEPTH) for pair in event.attributes},
            )
            for event in span.events
            if event.name in _NOTES
        ),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        error=clean_text(span.status.message),
        service=service,
    )


def _log(record: LogRecord, service: str) -> TelemetrySpan:
    time_us = (record.time_unix_nano or record.observed_time_unix_nano) // _NS_PER_US
    attributes = _attributes(record.attributes)
    return TelemetrySpan(
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex(),
        parent_id="",
        name=clean_text(record.event_name or str(attributes.get(_EVENT_NAME, "")), _NAME),
        start_us=time_us,
        end_us=time_us,
        attributes=attributes,
        service=service,
        is_log=True,
        body=_value(record.body, MAX_DEPTH),
    )


def _service(attributes: Iterable[KeyValue]) -> str:
    for pair in attributes:
        if pair.key == _SERVICE:
            return clean_text(pair.value.string_value, _NAME)
    return ""


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Json]:
    """Return what says something to Mneme; the rest, such as headers, is not kept."""
    return {
        pair.key: _value(pair.value, MAX_DEPTH) for pair in pairs if pair.key.startswith(PREFIXES)
    }


def _value(value: AnyValue, depth: int) -> Json:
    kind = value.WhichOneof("value")
    if kind is None or depth <= 0:
        return None
    if kind == "string_value":
        text = value.string_value
        return text.replace("\x00", "") if "\x00" in text else text
    if kind == "array_value":
        return [_value(item, depth - 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value, depth - 1) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode()
    return clean(getattr(value, kind))
