"""The API as other languages generate code from it: packages, and names that do not collide."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileOptions
from support.server import REPOSITORY

PROTOS = sorted((REPOSITORY / "proto").rglob("*.proto"))
FILES: dict[str, FileDescriptor] = {
    proto.stem: import_module(f"mneme.v1.{proto.stem}_pb2").DESCRIPTOR for proto in PROTOS
}
# protobufjs 7, which grpc-js loads protos with, refuses `names: [{…}, {…}]`; it reads
# `names: {…} names: {…}`, which says the same.
_LIST_OF_MESSAGES = re.compile(r":\s*\[\s*\{")


def messages_of(file: FileDescriptor) -> Iterator[Descriptor]:
    for message in file.message_types_by_name.values():
        yield message
        yield from message.nested_types


MESSAGES = {
    message.full_name: message
    for file in FILES.values()
    for message in messages_of(file)
    if not message.GetOptions().map_entry
}


def pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def java_getters(field: FieldDescriptor) -> set[str]:
    """The methods without arguments, and those that find by index or key, of a field's builder."""
    name = pascal(field.name)
    endings = [""]
    if field.message_type and field.message_type.GetOptions().map_entry:
        endings += ["Map", "Count", "OrDefault", "OrThrow"]
    elif field.is_repeated:
        endings += ["List", "Count"]
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        endings += ["OrBuilder", "Builder", "OrBuilderList", "BuilderList"]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        endings += ["Value", "ValueList"]
    elif field.type == FieldDescriptor.TYPE_STRING:
        endings += ["Bytes"]
    return {f"get{name}{ending}" for ending in endings}


def cpp_accessors(field: FieldDescriptor) -> set[str]:
    prefixes = ["", "clear_", "set_", "mutable_", "release_", "set_allocated_"]
    if field.is_repeated:
        return {f"{field.name}_size", f"add_{field.name}"} | {f"{p}{field.name}" for p in prefixes}
    return {f"{prefix}{field.name}" for prefix in [*prefixes, "has_"]}


def test_every_file_says_where_its_code_goes_in_each_language() -> None:
    for name, file in FILES.items():
        assert file.GetOptions() == FileOptions(
            csharp_namespace="Mneme.V1",
            go_package="mneme/v1;mnemev1",
            java_multiple_files=True,
            java_outer_classname=f"{pascal(name)}Proto",
            java_package="mneme.v1",
            objc_class_prefix="MNM",
            php_metadata_namespace="Mneme\\V1\\GPBMetadata",
            php_namespace="Mneme\\V1",
            ruby_package="Mneme::V1",
        )


@pytest.mark.parametrize("accessors", [java_getters, cpp_accessors])
def test_no_two_fields_of_a_message_have_an_accessor_in_common(
    accessors: Callable[[FieldDescriptor], set[str]],
) -> None:
    owners: dict[str, list[str]] = {}
    for name, message in MESSAGES.items():
        for field in message.fields:
            for accessor in accessors(field):
                owners.setdefault(f"{name}.{accessor}", []).append(field.name)
    assert {accessor: names for accessor, names in owners.items() if len(names) > 1} == {}


def test_no_two_classes_are_told_apart_by_case_alone() -> None:
    """Java has a file for each, and some file systems do not know case."""
    classes = [
        name
        for stem, file in FILES.items()
        for name in (
            f"{pascal(stem)}Proto",
            *file.message_types_by_name,
            *file.enum_types_by_name,
            *(f"{service}Grpc" for service in file.services_by_name),
        )
    ]
    assert len({name.lower() for name in classes}) == len(classes)


def test_no_option_is_a_list_of_messages() -> None:
    assert [path.name for path in PROTOS if _LIST_OF_MESSAGES.search(path.read_text())] == []
