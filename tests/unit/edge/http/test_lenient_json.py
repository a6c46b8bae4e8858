"""Whatever a sender writes into one span, the others are read as if it had not."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mneme_server.edge.grpc.wire import parse_parts
from mneme_server.edge.http import lenient_json
from mneme_server.features.otlp.capability import NEEDS
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.telemetry import with_bytes_for_spans

SPAN: dict[str, Any] = {
    "traceId": "a" * 32,
    "spanId": "b" * 16,
    "parentSpanId": "c" * 16,
    "name": "chat",
    "kind": 3,
    "startTimeUnixNano": "1777629600000000000",
    "attributes": [
        {"key": "k", "value": {"stringValue": "v"}},
        {"key": "n", "value": {"arrayValue": {"values": [{"intValue": "5"}, {"boolValue": True}]}}},
        {"key": "o", "value": {"kvlistValue": {"values": [{"key": "x", "value": {}}]}}},
    ],
    "events": [{"name": "exception", "timeUnixNano": "1", "attributes": []}],
    "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all that a span says."""
    inner = (
        list(value.items() if isinstance(value, dict) else enumerate(value))
        if isinstance(value, dict | list)
        else []
    )
    return [at] * bool(at) + [path for key, one in inner for path in places(one, (*at, key))]


@given(st.sampled_from(places(SPAN)), ANYTHING)
def test_a_value_of_any_kind_in_a_span_leaves_the_others_as_they_are(
    place: tuple[Any, ...], value: Any
) -> None:
    odd = copy.deepcopy(SPAN)
    holder = odd
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    sent = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, odd, SPAN]}]}]}
    request = ExportTraceServiceRequest()
    lenient_json.fill(request, lenient_json.load(json.dumps(sent).encode()), NEEDS.parts)
    first, _, last = request.resource_spans[0].scope_spans[0].spans
    assert first == last
    assert (first.name, first.trace_id.hex(), len(first.attributes)) == ("chat", "a" * 32, 3)
    assert first.attributes[1].value.array_value.values[0].int_value == 5


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_for_a_span_leave_the_others_as_they_are(odd: bytes) -> None:
    whole = ExportTraceServiceRequest().resource_spans.add().scope_spans.add().spans.add(name="one")
    sent = with_bytes_for_spans([whole.SerializeToString(), odd, whole.SerializeToString()])
    request = parse_parts(
        ExportTraceServiceRequest.FromString,
        ExportTraceServiceRequest.DESCRIPTOR,
        sent,
        NEEDS.parts,
    )
    assert isinstance(request, ExportTraceServiceRequest)
    first, _, last = request.resource_spans[0].scope_spans[0].spans
    assert (first.name, last.name) == ("one", "one")
