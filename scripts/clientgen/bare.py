"""An image without the options that only servers and other languages read.

What is left is what a client needs to write and read messages: a browser loads no rules of
validation, no routes and no scopes.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet


def bare(image: bytes) -> bytes:
    """The image without extensions, without values of them, and without what only these import."""
    files = FileDescriptorSet.FromString(_without_values(image))
    homes = {name: file.name for file in files.file for name in _defined(file)}
    for file in files.file:
        del file.extension[:]
        file.ClearField("options")  # They name packages of other languages.
        used = {homes[name] for name in _mentioned(file) if name in homes}
        kept = [name for name in file.dependency if name in used]
        del file.dependency[:]
        file.dependency.extend(kept)
    return files.SerializeToString()


def _without_values(image: bytes) -> bytes:
    """The image as it is read by one who knows of no extension, and keeps nothing unknown."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    name = FileDescriptorSet.DESCRIPTOR.full_name
    read = message_factory.GetMessageClass(pool.FindMessageTypeByName(name)).FromString(image)
    read.DiscardUnknownFields()
    return read.SerializeToString()


def _mentioned(file: FileDescriptorProto) -> Iterator[str]:
    """The full names of the messages and enums of fields and methods."""
    for _, message in _messages(file):
        yield from (field.type_name.removeprefix(".") for field in message.field)
    for method in (method for service in file.service for method in service.method):
        yield method.input_type.removeprefix(".")
        yield method.output_type.removeprefix(".")


def _defined(file: FileDescriptorProto) -> Iterator[str]:
    """The full names of a file's messages and enums."""
    yield from (f"{file.package}.{enum.name}" for enum in file.enum_type)
    for name, message in _messages(file):
        yield name
        yield from (f"{name}.{enum.name}" for enum in message.enum_type)


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """A file's messages by their full names, those inside of others too."""
    waiting = [(f"{file.package}.{message.name}", message) for message in file.message_type]
    while waiting:
        name, message = waiting.pop()
        yield name, message
        waiting += [(f"{name}.{inner.name}", inner) for inner in message.nested_type]
