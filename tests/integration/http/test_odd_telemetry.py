"""Exports with something broken in them: it costs its value or its span, and never the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from integration.http.test_telemetry_over_http import BINARY, JSON, TRACES
from integration.test_telemetry import chat, until_told
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from support.api import Api
from support.http import Http
from support.making import list_events
from support.telemetry import span, with_bytes_for_spans

TEXT = '"stringValue":"Why?"'
PROMPT = f'{{"key":"gen_ai.prompt","value":{{{TEXT}}}}}'
NESTED = '"arrayValue":{"values":[{' * 60 + '"intValue":1' + "}]}" * 60
ODD = {
    "the first half of a character": ("Why?", "\\ud83d"),
    "the second half of a character": ("Why?", "\\ude00"),
    "a control character": ("Why?", "\x01"),
    "bytes that are no UTF-8": ("Why?", "\udcff"),
    "half of a character in a key": ("gen_ai.prompt", "\\ud83d"),
    "a value that says no kind": (f"{{{TEXT}}}", '"Why?"'),
    "a number for a text": ('"Why?"', "5"),
    "a number beyond its limits": (TEXT, '"intValue":"' + "9" * 30 + '"'),
    "a number of 5,000 digits": (TEXT, '"intValue":' + "9" * 5000),
    "a number that is none": (TEXT, '"intValue":"x"'),
    "NaN": (TEXT, '"doubleValue":NaN'),
    "bytes that are no Base64": (TEXT, '"bytesValue":"%"'),
    "60 levels": (TEXT, NESTED),
    "5,000 levels": (TEXT, '"x":' + "[" * 5000 + "]" * 5000),
    "attributes of which one is no object": (PROMPT, "5"),
    "a kind that is none": ('"kind":3', '"kind":"NEWEST"'),
    "a count beyond its limits": ('"kind":3', '"droppedEventsCount":-1'),
    "a link that leads nowhere": ('"kind":3', '"links":[{"traceId":"?"}]'),
    "events that are no list": ('"kind":3', '"events":"none"'),
    "a status that is none": ('"kind":3', '"status":{"code":"FINE"}'),
}
REFUSED = {
    "an id in Base64": ("b" * 32, "q83vASNFZ4mrze8BI0VniQ=="),
    "an id that is a number": (f'"{"b" * 32}"', "5"),
    "an id that is half a digit short": (f'"{"b" * 16}"', f'"{"b" * 15}"'),
    "a parent that is no id": ('"kind":3', '"parentSpanId":"?"'),
    "a time that is none": ('UnixNano":"17', 'UnixNano":"at 17'),
    "a time below zero": ('UnixNano":"17', 'UnixNano":"-17'),
}


def written(digit: str) -> str:
    """A span of a session of its own, in JSON."""
    pairs = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": digit}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in pairs.items()]
    return (
        f'{{"traceId":"{digit * 32}","spanId":"{digit * 16}","name":"chat","kind":3,'
        '"startTimeUnixNano":"1777629600000000000","endTimeUnixNano":"1777629601000000000",'
        f'"attributes":[{PROMPT},{json.dumps(attributes)[1:]}}}'
    )


def export(http: Http, body: bytes, path: str = TRACES, kind: str = JSON) -> Any:
    return http.client.post(path, content=body, headers={"content-type": kind})


def export_odd(http: Http, usual: str, odd: str) -> Any:
    """Send three spans, of which the second is odd."""
    assert usual in written("b")
    spans = [written("a"), written("b").replace(usual, odd), written("c")]
    body = '{"resourceSpans":[{"scopeSpans":[{"spans":[' + ",".join(spans) + "]}]}]}"
    answer = export(http, body.encode("utf-8", "surrogateescape"))
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("what", ODD)
def test_a_value_that_cannot_be_read_costs_neither_its_span_nor_the_others(
    api: Api, http: Http, what: str
) -> None:
    assert export_odd(http, *ODD[what]) == {}
    until_told(api, 5)
    sessions = {event.session_id for event in list_events(api)}
    assert sessions == {"a", "b", "c"}


@pytest.mark.parametrize("what", REFUSED)
def test_a_span_that_cannot_be_placed_is_told_and_costs_no_other(
    api: Api, http: Http, what: str
) -> None:
    told = export_odd(http, *REFUSED[what])["partialSuccess"]
    assert told["rejectedSpans"] == "1"
    assert " must be " in told["errorMessage"]
    until_told(api, 4)
    assert {event.session_id for event in list_events(api)} == {"a", "c"}


def test_a_log_record_that_is_broken_costs_no_other(http: Http) -> None:
    records = [
        {"eventName": "gen_ai.user.message", "timeUnixNano": "1777629600000000000", "body": body}
        for body in ({"stringValue": "cut \ud83d"}, {"stringValue": "whole"}, 5)
    ]
    sent = {"resourceLogs": [{"scopeLogs": [{"logRecords": [*records, 7]}]}]}
    answer = export(http, json.dumps(sent).encode(), "/v1/logs")
    assert answer.status_code == 200
    # The last is no record; the others name neither a span nor a conversation.
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "4"


def test_a_broken_span_in_protobufs_form_costs_no_other(api: Api, http: Http) -> None:
    good, odd = (
        span(n, chat(f"{n}", "XYZ", **{"gen_ai.conversation.id": "c"})).SerializeToString()
        for n in (1, 2)
    )
    sent = with_bytes_for_spans([good, odd.replace(b"XYZ", b"\xed\xa0\xbd"), odd[:-3]])
    taken = trace_pb.ExportTraceServiceResponse.FromString(export(http, sent, kind=BINARY).content)
    assert taken.partial_success.rejected_spans == 1
    assert {"1", "2", "XYZ"} <= {said for _, said in until_told(api, 6)}
