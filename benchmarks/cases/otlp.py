"""Spans that instrumented agents export, acknowledged durable."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from urllib.parse import urlsplit

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from benchmarks.context import Context
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.report import NO_BUDGET, Row, at_rate, milliseconds
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
    """Export over gRPC and over HTTP: spans that wait for the root of their trace, and such that
    become events meanwhile."""
    exports = max(4, _EXPORTS * context.sizes.calls // 200)
    settings = {"http_listen": "127.0.0.1:0", "otlp_wait_seconds": "3600"}
    with Server(context.work / "otlp", settings) as server:
        waiting = [
            _row(f"spans exported over {edge}", _measured(context, server, edge, exports), exports)
            for edge in ("gRPC", "HTTP")
        ]
        rounds = _measured(context, server, "gRPC", exports, rooted=True)
        beside = _row("spans exported over gRPC, which become events meanwhile", rounds, exports)
        return [*waiting, replace(beside, budget="", verdict=NO_BUDGET)]


def _measured(
    context: Context, server: Server, edge: str, exports: int, *, rooted: bool = False
) -> Rounds:
    """Export from a tenant of its own."""
    tenant_id = f"agents-{edge.lower()}-{rooted}".lower()
    context.say(f"OpenTelemetry: {tenant_id}")
    client = server.tenant(tenant_id)
    key = dict(client.metadata)["authorization"]
    export = _grpc(server.address, key) if edge == "gRPC" else _http(server.http_address, key)
    made = _requests(seed=60, rooted=rooted)
    export(next(made))  # Opens the tenant.
    rounds: list[Round] = []
    for _ in range(context.sizes.rounds):
        given = [next(made) for _ in range(exports)]
        before = server.cpu_s()
        timed = time_calls(export, given, in_flight=_IN_FLIGHT)
        rounds.append(replace(timed, cpu_s=server.cpu_s() - before))
    return Rounds(rounds)


def _row(what: str, rounds: Rounds, exports: int) -> Row:
    per_second = rounds.per_second * _BATCH
    return Row(
        f"{what}, {_BATCH} at once",
        f"≥ {MIN_PER_SECOND:,}/s acknowledged durable",
        f"{per_second:,.0f}/s, {_cpu_us(rounds):.0f} µs of processor time each; an export p50"
        f" {milliseconds(rounds.p50_ms)}, p95 {milliseconds(rounds.p95_ms)}",
        at_rate(per_second, MIN_PER_SECOND),
        f"{len(rounds.rounds)} rounds of {exports} exports, {_IN_FLIGHT} in flight, of calls of"
        f" models with their texts, and of tools; load average {os.getloadavg()[0]:.1f}",
        {**rounds.figures(), "spans_per_second": per_second, "cpu_us": _cpu_us(rounds)},
    )


def _cpu_us(rounds: Rounds) -> float:
    """Return the server's processor time for a span, in microseconds."""
    return (rounds.cpu_ms or 0.0) * 1000 / _BATCH


def _requests(seed: int, *, rooted: bool) -> Iterator[bytes]:
    """Yield requests, encoded, each with traces of its own. Without their roots they wait."""
    texts = [event.text for event in events(1_000, seed=seed)]
    for number in count():
        spans = [
            span
            for trace in range(_BATCH // _TRACE)
            for span in _trace(seed, number * (_BATCH // _TRACE) + trace, texts, rooted=rooted)
        ]
        scope = ScopeSpans(spans=spans)
        service = [_pair("service.name", "shop-agent")]
        resource = ResourceSpans(scope_spans=[scope])
        resource.resource.attributes.extend(service)
        yield ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def _trace(seed: int, number: int, texts: Sequence[str], *, rooted: bool) -> Iterator[Span]:
    """Yield the spans of an agent's turn, the children first: calls of a model and of tools."""
    trace_id = seed.to_bytes(4, "big") + number.to_bytes(12, "big")
    for place in range(_TRACE):
        told, said = (texts[(number * _TRACE + place + n) % len(texts)] for n in range(2))
        if rooted and place == _TRACE - 1:
            agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
            yield _span(trace_id, 1, 0, "invoke_agent", agent)
        elif place % 2:
            yield _span(trace_id, place + 2, 1, "tool", _tool(told, said))
        else:
            yield _span(trace_id, place + 2, 1, "chat", _chat(told, said))


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
    trace_id: bytes, number: int, parent: int, name: str, attributes: Mapping[str, str | int]
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
