"""Spans that instrumented agents export, acknowledged durable."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from urllib.parse import urlsplit

import grpc
from mneme import MnemeClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from benchmarks.context import Context
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.report import Row, at_least, milliseconds
from benchmarks.server import Server
from benchmarks.texts import events

MIN_PER_SECOND = 5_000
_BATCH = 512
"""Spans that an OpenTelemetry SDK exports at once, unless it is told otherwise."""
_TRACE = 8
_EXPORTS = 16
_IN_FLIGHT = 2
_PATIENCE_S = 60.0
_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def run(context: Context) -> list[Row]:
    """Export over gRPC and over HTTP; what was exported becomes events meanwhile."""
    exports = max(4, _EXPORTS * context.sizes.calls // 200)
    with Server(context.work / "otlp", {"http_listen": "127.0.0.1:0"}) as server:
        rows = []
        for number, (edge, exporter) in enumerate((("gRPC", _grpc), ("HTTP", _http))):
            context.say(f"OpenTelemetry over {edge}")
            client = server.tenant(f"agents-{number}")
            key = dict(client.metadata)["authorization"]
            address = server.address if edge == "gRPC" else server.http_address
            made = _requests(seed=60 + number)
            rounds: list[Round] = []
            for _ in range(context.sizes.rounds):
                given = [next(made) for _ in range(exports)]
                export = exporter(address, key)
                before = server.cpu_s()
                timed = time_calls(export, given, in_flight=_IN_FLIGHT)
                rounds.append(replace(timed, cpu_s=server.cpu_s() - before))
            recorded_s = _until_recorded(client, exports * context.sizes.rounds)
            rows.append(_row(edge, Rounds(rounds), recorded_s, exports))
    return rows


def _row(edge: str, rounds: Rounds, recorded_s: float, exports: int) -> Row:
    per_second = rounds.per_second * _BATCH
    return Row(
        f"spans exported over {edge}, {_BATCH} at once",
        f"≥ {MIN_PER_SECOND:,}/s acknowledged durable",
        f"{per_second:,.0f}/s, {_cpu_us(rounds):.0f} µs of processor time each; an export p50"
        f" {milliseconds(rounds.p50_ms)}, p95 {milliseconds(rounds.p95_ms)}; all were events"
        f" {recorded_s:.0f} s after the last",
        at_least(per_second, MIN_PER_SECOND),
        f"{len(rounds.rounds)} rounds of {exports} exports, {_IN_FLIGHT} in flight, of traces with"
        f" {_TRACE} spans, with texts, that name their session; they become events meanwhile",
        {
            **rounds.figures(),
            "spans_per_second": per_second,
            "recorded_s": recorded_s,
            "cpu_us": _cpu_us(rounds),
        },
    )


def _cpu_us(rounds: Rounds) -> float:
    """Return the server's processor time for a span, in microseconds."""
    return (rounds.cpu_ms or 0.0) * 1000 / _BATCH


def _until_recorded(client: MnemeClient, exports: int) -> float:
    """Return how long it took until the sessions of all exports are there, in seconds."""
    began = time.perf_counter()
    sessions = exports * (_BATCH // _TRACE)
    while client.list_sessions(page_size=1).total_size < sessions:
        time.sleep(1.0)
    return time.perf_counter() - began


def _requests(seed: int) -> Iterator[bytes]:
    """Yield requests, encoded, each with traces of its own."""
    texts = [event.text for event in events(1_000, seed=seed)]
    for number in count():
        spans = [
            span
            for trace in range(_BATCH // _TRACE)
            for span in _trace(seed, number * (_BATCH // _TRACE) + trace, texts)
        ]
        scope = ScopeSpans(spans=spans)
        service = [_pair("service.name", "shop-agent")]
        resource = ResourceSpans(scope_spans=[scope])
        resource.resource.attributes.extend(service)
        yield ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def _trace(seed: int, number: int, texts: Sequence[str]) -> Iterator[Span]:
    """Yield the spans of an agent's turn, the children first: calls of a model and of tools."""
    trace_id = seed.to_bytes(4, "big") + number.to_bytes(12, "big")
    session = {"gen_ai.conversation.id": f"c-{seed}-{number}"}
    for place in range(1, _TRACE):
        told, said = (texts[(number * _TRACE + place + n) % len(texts)] for n in range(2))
        model = place % 2
        attributes = _chat(told, said) if model else _tool(told, said)
        yield _span(trace_id, place + 1, 1, "chat" if model else "tool", session | attributes)
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
    yield _span(trace_id, 1, 0, "invoke_agent", session | agent)


def _chat(told: str, said: str) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": told}]}]
        ),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]
        ),
    }


def _tool(asked: str, answered: str) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": json.dumps({"query": asked}),
        "gen_ai.tool.call.result": answered,
    }


def _span(
    trace_id: bytes, number: int, parent: int, name: str, attributes: dict[str, str | int]
) -> Span:
    start = 1_790_000_000_000_000_000 + number * 1_000_000
    return Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=start + 500_000,
        attributes=[_pair(key, value) for key, value in attributes.items()],
    )


def _pair(key: str, value: str | int) -> KeyValue:
    kind = "string_value" if isinstance(value, str) else "int_value"
    return KeyValue(key=key, value=AnyValue(**{kind: value}))


def _grpc(address: str, key: str) -> Callable[[bytes], object]:
    send = grpc.insecure_channel(address).unary_unary(
        _EXPORT, response_deserializer=ExportTraceServiceResponse.FromString
    )
    metadata = [("authorization", key)]

    def export(request: bytes) -> None:
        _check(send(request, metadata=metadata, timeout=_PATIENCE_S))

    return export


def _http(address: str, key: str) -> Callable[[bytes], object]:
    place = urlsplit(address)
    free = [
        http.client.HTTPConnection(place.hostname or "", place.port, timeout=_PATIENCE_S)
        for _ in range(_IN_FLIGHT)
    ]
    headers = {"authorization": key, "content-type": "application/x-protobuf"}

    def export(request: bytes) -> None:
        connection = free.pop()
        connection.request("POST", "/v1/traces", request, headers)
        answer = connection.getresponse()
        told = answer.read()
        free.append(connection)
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {told!r}")
        _check(ExportTraceServiceResponse.FromString(told))

    return export


def _check(answer: ExportTraceServiceResponse) -> None:
    if answer.partial_success.rejected_spans:
        raise AssertionError(answer.partial_success.error_message)
