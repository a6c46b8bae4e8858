"""OpenTelemetry's protocol over HTTP: the same inbox, in protobuf's form and in its own JSON."""

from __future__ import annotations

import gzip
import json
import socket
from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf import json_format
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from integration.test_telemetry import chat, until_told
from mneme.v1 import auth_pb2
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from support.api import Api
from support.http import Http
from support.making import list_events
from support.server import LocalServer
from support.telemetry import request, span

TRACES = "/v1/traces"
BINARY = "application/x-protobuf"
JSON = "application/json"
CONVERSATION = {"gen_ai.conversation.id": "c"}
BOMB = gzip.compress(bytes(80 * 1024 * 1024))


def export(http: Http, body: bytes, path: str = TRACES, kind: str = BINARY, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.client.post(path, content=body, headers={"content-type": kind} | named)


def one_trace(**more: Any) -> trace_pb.ExportTraceServiceRequest:
    return request([span(1, chat("Where is it?", "There.", **CONVERSATION), **more)])


def in_json(message: Any) -> dict[str, Any]:
    """A request as OpenTelemetry's JSON has it: ids in hexadecimal, enums as numbers."""
    value = json_format.MessageToDict(message, use_integers_for_enums=True)
    for one in value["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        original = message.resource_spans[0].scope_spans[0].spans[0]
        one |= {"traceId": original.trace_id.hex(), "spanId": original.span_id.hex()}
    return value


def test_what_is_exported_in_protobufs_form_is_remembered(api: Api, http: Http) -> None:
    answer = export(http, one_trace().SerializeToString())
    assert (answer.status_code, answer.headers["content-type"]) == (200, BINARY)
    taken = trace_pb.ExportTraceServiceResponse.FromString(answer.content)
    assert not taken.HasField("partial_success")
    assert {said for _, said in until_told(api, 3)} == {"Where is it?", "llm_call", "There."}


def test_what_is_exported_in_json_is_the_same(api: Api, http: Http) -> None:
    said = in_json(one_trace())
    said["resourceSpans"][0]["somethingNew"] = {"unknown": True}
    answer = export(http, json.dumps(said).encode(), kind=f"{JSON}; charset=utf-8")
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"].startswith(JSON)
    before = until_told(api, 3)
    assert export(http, one_trace().SerializeToString()).status_code == 200
    other = request([span(2, chat("More?", "No.", **CONVERSATION), trace=2)])
    export(http, other.SerializeToString())
    assert until_told(api, 6)[:3] == before


def test_a_packed_body_is_unpacked(api: Api, http: Http) -> None:
    whole = one_trace().SerializeToString()
    packed = gzip.compress(whole[:40]) + gzip.compress(whole[40:])
    assert export(http, packed, content_encoding="gzip").status_code == 200
    assert len(until_told(api, 3)) == 3


def test_what_is_packed_in_json_comes_over_the_rest_api_too(http: Http) -> None:
    body = gzip.compress(json.dumps({"title": "t", "content": "c"}).encode())
    headers = {"content-type": JSON, "content-encoding": "gzip"}
    assert http.client.post("/api/lessons", content=body, headers=headers).status_code == 200


@pytest.mark.parametrize("path", [TRACES, "/v1/logs", "/v1/metrics", "/api/lessons"])
def test_a_bomb_is_refused_before_it_is_unpacked(path: str, api: Api, http: Http) -> None:
    kind = JSON if path.startswith("/api") else BINARY
    answer = export(http, BOMB, path, kind, content_encoding="gzip")
    assert answer.status_code == 413
    assert list_events(api) == []


@pytest.mark.parametrize(
    "body",
    [b"not packed", gzip.compress(b"x" * 500)[:-9], gzip.compress(b"") + b"\0\0"],
    ids=["other bytes", "without its end", "with more behind it"],
)
def test_what_is_packed_wrongly_is_refused(http: Http, body: bytes) -> None:
    answer = export(http, body, content_encoding="gzip")
    assert answer.status_code == 400
    assert "gzip" in Status.FromString(answer.content).message


def test_what_cannot_be_taken_is_counted_and_the_rest_is_taken(api: Api, http: Http) -> None:
    said = in_json(one_trace())
    spans = said["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append(spans[0] | {"traceId": "00" * 16})
    answer = export(http, json.dumps(said).encode(), kind=JSON).json()
    assert answer == {
        "partialSuccess": {
            "rejectedSpans": "1",
            "errorMessage": "1: a trace_id must be 16 bytes (32 hexadecimal digits in JSON) and not"
            " all zero",
        }
    }
    assert len(until_told(api, 3)) == 3


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\x0a\xff\xff", BINARY),
        (b"{", JSON),
        (b"[]", JSON),
        (b'{"resourceSpans": 5}', JSON),
        (b'{"resourceSpans": [5]}', JSON),
        (b'{"resourceSpans": [{"scopeSpans": 5}]}', JSON),
        (b"[" * 5_000 + b"]" * 5_000, JSON),
        (b'{"resourceSpans":' * 500 + b"{}" + b"}" * 500, JSON),
    ],
)
def test_what_is_no_request_is_refused_in_the_requests_own_form(
    http: Http, body: bytes, kind: str
) -> None:
    answer = export(http, body, kind=kind)
    assert (answer.status_code, answer.headers["content-type"]) == (400, kind)
    if kind == JSON:
        said = answer.json()
        assert (said["code"], said["details"][0]["reason"]) == (3, "INVALID_TYPE")
    else:
        status, info = Status.FromString(answer.content), ErrorInfo()
        assert status.details[0].Unpack(info)
        assert (status.code, info.reason) == (3, "INVALID_TYPE")


def test_a_key_must_be_there_be_known_and_may_write(
    server: LocalServer, api: Api, over_http: Any
) -> None:
    reader = server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ)
    stranger = server.keys.api("mn_nobody")
    for caller, status in ((None, 401), (stranger, 401), (reader, 403)):
        http = over_http(caller)
        for path in (TRACES, "/v1/logs", "/v1/metrics"):
            answer = export(http, b"", path)
            assert (answer.status_code, answer.headers["content-type"]) == (status, BINARY)
            assert Status.FromString(answer.content).message


def test_other_methods_and_kinds_are_told_what_there_is(http: Http) -> None:
    got = http.ask("GET", TRACES)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    other = export(http, b"x", kind="text/plain")
    assert (other.status_code, other.headers["accept-post"]) == (415, f"{BINARY}, {JSON}")
    packed = export(http, b"x", content_encoding="br")
    assert (packed.status_code, packed.headers["accept-encoding"]) == (415, "gzip")


def test_metrics_and_logs_that_say_nothing_are_taken_and_dropped(api: Api, http: Http) -> None:
    metrics = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "gauge": {}}]}]}]}
    answer = export(http, json.dumps(metrics).encode(), "/v1/metrics", JSON)
    assert (answer.status_code, answer.json()) == (200, {})
    logs = logs_pb.ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "a line"
    assert export(http, logs.SerializeToString(), "/v1/logs").status_code == 200
    assert list_events(api) == []


def test_a_caller_that_leaves_in_the_middle_takes_nothing_with_it(
    server: LocalServer, api: Api, http: Http
) -> None:
    host, port = server.http_address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as leaving:
        head = f"POST {TRACES} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {api.secret}\r\n"
        leaving.sendall(f"{head}content-type: {BINARY}\r\ncontent-length: 100\r\n\r\nxx".encode())
    assert export(http, one_trace().SerializeToString()).status_code == 200
    assert len(until_told(api, 3)) == 3


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_exporters_of_opentelemetry_need_nothing_but_their_variables(
    compression: str, server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": server.http_address,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={quote(f'Bearer {api.secret}')}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
    }.items():
        monkeypatch.setenv(name, value)
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    attributes = {
        name: value if isinstance(value, str | int) else json.dumps(value)
        for name, value in chat("Where is it?", "There.").items()
    }
    with traces.get_tracer("agent").start_as_current_span("chat", attributes=attributes):
        pass
    assert {said for _, said in until_told(api, 3)} == {"Where is it?", "llm_call", "There."}
    metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    metrics.get_meter("agent").create_counter("calls").add(1)
    assert metrics.force_flush()
    metrics.shutdown()
    traces.shutdown()
