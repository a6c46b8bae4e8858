"""What a call asks for to compute, as its method's option `cost` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import (
    context_service_pb2,
    memory_service_pb2,
    options_pb2,
)
from mneme_server.common import turns
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.methods import methods_of
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.otlp.capability import NEEDS
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from support.making import event
from unit.edge.grpc.edge import SERVICES, Client, Edge, all_methods

METHODS = methods_of(SERVICES.values())


def large_turn() -> bool:
    """Whether what computes now has a large turn."""
    return bool(turns.current()._has_large)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "request_", "large"),
    [
        ("EventService/RecordEvents", {"events": 32}, False),
        ("EventService/RecordEvents", {"events": 33}, True),
        ("EventService/ListEvents", {"page_size": 32}, False),
        ("EventService/ListEvents", {"page_size": 33}, True),
        ("EventService/ListEvents", {}, True),  # Its default is 50.
        ("RecallService/Recall", {"query": "w" * 500}, False),
        ("RecallService/Recall", {"query": "w" * 501}, True),
        ("EventService/GetSession", {"session_id": "s"}, False),
        ("ReflectService/Reflect", {"error_patterns": {}}, True),
    ],
)
def test_a_call_computes_in_a_turn_of_the_size_that_its_request_tells(
    shared_edge: Edge, path: str, request_: Mapping[str, Any], large: bool
) -> None:
    service, name = path.split("/")
    method = SERVICES[service].methods_by_name[name]
    sizes: list[bool] = []

    def behave(_request: Message, _call: object) -> Message:
        with turns.computing():
            sizes.append(large_turn())
        return GetMessageClass(method.output_type)()

    shared_edge.on(path, behave)
    given = dict(request_)
    if "events" in given:
        given["events"] = [event(f"event {n}") for n in range(given["events"])]
    client(shared_edge).call(path, GetMessageClass(method.input_type)(**given))
    assert sizes == [large]


def client(edge: Edge) -> Client:
    return edge.client(edge.key().secret)


def test_a_batch_of_a_stream_tells_what_it_asks_for() -> None:
    sizes: list[bool] = []

    def items() -> Iterator[tuple[int, int]]:
        for n in range(70):
            yield n, 1

    turns.enter(Foreground().turn())
    for _ in Batches(items(), BatchLimits(items=40, delay_s=20.0)):
        with turns.computing():
            sizes.append(large_turn())
    turns.leave()
    assert sizes == [True, False]


@pytest.mark.parametrize("count", [32, 33])
def test_what_others_export_is_sized_by_its_spans(count: int) -> None:
    service = trace_service_pb2.DESCRIPTOR.services_by_name["TraceService"]
    (method,) = methods_of([], foreign=[(service, NEEDS)]).values()
    request = trace_service_pb2.ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for _ in range(count):
        scope.spans.add()
    assert method.is_large(request) == (count == 33)


@pytest.mark.parametrize("method", all_methods(), ids=lambda method: method.full_name)
def test_a_page_costs_what_its_size_is(method: MethodDescriptor) -> None:
    paged = "page_size" in method.input_type.fields_by_name
    assert (extension(method, options_pb2.cost).by == "page_size") == paged


@pytest.mark.parametrize(
    "request_",
    [
        memory_service_pb2.SearchMemoriesRequest(query="w" * 501),
        context_service_pb2.GetContextRequest(topic="w" * 501),
    ],
    ids=lambda request: request.DESCRIPTOR.name,
)
def test_a_question_is_large_that_has_a_hundred_words(request_: Message) -> None:
    (method,) = (one for one in METHODS.values() if one.request_type is request_.DESCRIPTOR)
    assert method.is_large(request_)
    assert not method.is_large(type(request_)())


def test_a_cost_is_told_by_a_field_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = options_pb2.CallCost(by="nothing")
    monkeypatch.setattr(
        "mneme_server.edge.grpc.methods.extension",
        lambda method, option: unknown if option is options_pb2.cost else extension(method, option),
    )
    with pytest.raises(LookupError, match="nothing"):
        methods_of([SERVICES["RecallService"]])
