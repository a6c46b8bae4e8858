"""What an answer is mainly: the list that was asked for, or the one thing that was made or read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from clientgen.description import PACKAGE, Api

_LISTING = ("List", "Search", "Match", "Recall")
_OF_ONE = ("Create", "Get", "Start", "Update")


def main_lists(api: Api) -> Mapping[str, FieldDescriptor]:
    """The list for which the answer of a call that lists or searches stands, by the answer's name:
    its only one of messages."""
    found: dict[str, FieldDescriptor] = {}
    for method in _methods(api, _LISTING):
        lists = [field for field in _messages(method) if field.is_repeated]
        if len(lists) == 1:
            found[method.output_type.full_name] = lists[0]
    return found


def main_messages(api: Api) -> Mapping[str, FieldDescriptor]:
    """The one thing with an id in the answer of a call that makes, starts, reads or changes one."""
    found: dict[str, FieldDescriptor] = {}
    for method in _methods(api, _OF_ONE):
        single = [
            field
            for field in _messages(method)
            if not field.is_repeated and "id" in message_in(field).fields_by_name
        ]
        if len(single) == 1 and "id" not in method.output_type.fields_by_name:
            found[method.output_type.full_name] = single[0]
    return found


def message_in(field: FieldDescriptor) -> Descriptor:
    """The message that a field of one holds."""
    assert field.message_type is not None
    return field.message_type


def _methods(api: Api, verbs: tuple[str, ...]) -> Iterator[MethodDescriptor]:
    for service in api.services:
        for rpc in service.rpcs:
            if rpc.descriptor.name.startswith(verbs) and not rpc.descriptor.server_streaming:
                yield rpc.descriptor


def _messages(method: MethodDescriptor) -> list[FieldDescriptor]:
    """The fields that hold messages of the API, maps aside."""
    return [
        field
        for field in method.output_type.fields
        if field.message_type
        and field.message_type.full_name.startswith(f"{PACKAGE}.")
        and not field.message_type.GetOptions().map_entry
    ]
