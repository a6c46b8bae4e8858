"""A key without scope read is answered nothing stored that it did not send: over all RPCs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import discovery_pb2 as discovery_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.methods import methods_of
from mneme_server.edge.grpc.readable import KEPT, cut, readable_types
from unit.edge.grpc.edge import SERVICES, Edge, all_methods

SECRET = "what another wrote"
READABLE = readable_types(SERVICES.values())
METHODS = methods_of(SERVICES.values())


def scope_of(method: MethodDescriptor) -> Any:
    return METHODS[f"/{method.containing_service.full_name}/{method.name}"].scope


WRITING = [one for one in all_methods() if scope_of(one) in (KeyScope.WRITE, KeyScope.LEARN)]


def filled(descriptor: Descriptor, depth: int = 6) -> Message:
    """A message with something in each field."""
    message: Any = GetMessageClass(descriptor)()
    if descriptor.full_name == Packed.DESCRIPTOR.full_name:
        return message
    for field in descriptor.fields:
        if field.containing_oneof is not None and message.WhichOneof(field.containing_oneof.name):
            continue
        if field.message_type is not None:
            if field.message_type.GetOptions().map_entry:
                key, value = field.message_type.fields_by_name.values()
                if value.message_type is None and key.type == FieldDescriptor.TYPE_STRING:
                    getattr(message, field.name)[SECRET] = _value(value)
            elif depth:
                given = filled(field.message_type, depth - 1)
                if field.is_repeated:
                    getattr(message, field.name).append(given)
                else:
                    getattr(message, field.name).CopyFrom(given)
        elif field.is_repeated:
            getattr(message, field.name).append(_value(field))
        else:
            setattr(message, field.name, _value(field))
    return message


def _value(field: FieldDescriptor) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return SECRET
    if field.type == FieldDescriptor.TYPE_BYTES:
        return SECRET.encode()
    if field.type == FieldDescriptor.TYPE_ENUM:
        return field.enum_type.values[-1].number
    return 1


def told(message: Any, path: str = "") -> Iterator[str]:
    """The paths of the texts in messages that calls with scope read answer with."""
    stored = message.DESCRIPTOR.full_name in READABLE
    for field, value in message.ListFields():
        here = f"{path}.{field.name}"
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            if stored and SECRET in str(value) and field.name not in KEPT:
                yield here
        elif field.message_type.full_name.startswith("mneme."):
            for one in value if field.is_repeated else (value,):
                yield from told(one, here)
        elif stored and SECRET in str(value):
            yield here


@pytest.mark.parametrize("method", WRITING, ids=lambda one: one.name)
def test_no_answer_tells_what_is_stored(method: MethodDescriptor) -> None:
    answer = filled(method.output_type)
    assert not list(told(cut(answer, READABLE)))


def test_some_would_without_it() -> None:
    telling = {one.name for one in WRITING if list(told(filled(one.output_type)))}
    assert {"UpdateMemory", "DeleteEpisode", "CreateMemory", "UpdateLesson"} <= telling


def test_what_an_operation_came_to_is_cut_as_well() -> None:
    answer = operations_pb.GetOperationResponse()
    answer.operation.id = "o"
    answer.operation.response.Pack(filled(discovery_pb.DiscoverResult.DESCRIPTOR))
    shown = cut(answer, READABLE)
    inner = discovery_pb.DiscoverResult()
    assert shown.operation.id == "o"  # type: ignore[attr-defined]
    shown.operation.response.Unpack(inner)  # type: ignore[attr-defined]
    assert not list(told(inner))


@pytest.mark.parametrize("reads", [True, False])
def test_a_key_gets_of_a_thing_what_its_scopes_say(reads: bool, edge: Edge) -> None:
    path = "LearnService/UpdateLesson"
    method = SERVICES["LearnService"].methods_by_name["UpdateLesson"]
    edge.on(path, lambda _request, _call: filled(method.output_type))
    scopes = {KeyScope.WRITE, KeyScope.READ} if reads else {KeyScope.WRITE}
    request: Any = GetMessageClass(method.input_type)()
    request.lesson.id = "l"
    request.update_mask.paths.append("title")
    answer = edge.client(edge.key(scopes=scopes).secret).call(path, request)
    assert answer.lesson.id == SECRET
    assert (answer.lesson.content == SECRET) is reads
