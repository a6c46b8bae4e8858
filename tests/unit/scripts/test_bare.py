"""The image that the TypeScript client's descriptors are made of."""

from __future__ import annotations

from clientgen.bare import bare
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, MethodOptions
from mneme.v1 import recall_service_pb2

_RECALL = "mneme/v1/recall_service.proto"


def image() -> bytes:
    """The schema of recall with everything that it imports."""
    found: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptor) -> None:
        for needed in file.dependencies:
            add(needed)
        found[file.name] = FileDescriptorProto.FromString(file.serialized_pb)

    add(recall_service_pb2.DESCRIPTOR)
    return FileDescriptorSet(file=found.values()).SerializeToString()


def recall_of(image: bytes) -> FileDescriptorProto:
    files = FileDescriptorSet.FromString(image).file
    return next(file for file in files if file.name == _RECALL)


def test_what_only_options_need_is_not_imported() -> None:
    assert "buf/validate/validate.proto" in recall_of(image()).dependency
    assert sorted(recall_of(bare(image())).dependency) == [
        "google/protobuf/struct.proto",
        "google/protobuf/timestamp.proto",
        "mneme/v1/certificate.proto",
        "mneme/v1/common.proto",
    ]


def test_fields_and_methods_are_as_they_were_but_for_their_rules() -> None:
    before, after = recall_of(image()), recall_of(bare(image()))
    fields = [field for message in after.message_type for field in message.field]
    assert [field.name for field in fields] == [
        field.name for message in before.message_type for field in message.field
    ]
    assert {field.options.SerializeToString() for field in fields} == {b""}
    assert [method.name for method in after.service[0].method] == [
        method.name for method in before.service[0].method
    ]


def test_what_protobuf_itself_says_of_a_method_stays() -> None:
    recall = next(one for one in recall_of(bare(image())).service[0].method if one.name == "Recall")
    only = MethodOptions(idempotency_level=descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS)
    assert recall.options == only
