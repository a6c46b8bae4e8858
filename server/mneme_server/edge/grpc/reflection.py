"""Server reflection, so that grpcurl and buf curl need no files; v1 and v1alpha."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import ReflectionServicer

_ALPHA = "grpc.reflection.v1alpha"
_V1 = "grpc.reflection.v1"
_SERVICE = "ServerReflection"
_METHOD = "ServerReflectionInfo"


def reflection_services() -> tuple[ServiceDescriptor, ServiceDescriptor]:
    """Return the two versions' descriptors."""
    return _v1_service(), reflection_pb2.DESCRIPTOR.services_by_name[_SERVICE]


def add_reflection(service_names: Sequence[str], server: grpc.Server) -> None:
    """Serve the descriptors of `service_names`, and of reflection itself."""
    services = reflection_services()
    servicer = ReflectionServicer([*service_names, *(s.full_name for s in services)])
    # The versions differ in their package's name only, so one servicer speaks both.
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(s.full_name, {_METHOD: handler}) for s in services
        )
    )


def _v1_service() -> ServiceDescriptor:
    """Return v1, made from v1alpha, which is the one that the Python package brings."""
    pool = Default()
    try:
        return pool.FindServiceByName(f"{_V1}.{_SERVICE}")
    except KeyError:
        pass
    file = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    file.name = "grpc/reflection/v1/reflection.proto"
    file.package = _V1
    file.ClearField("options")
    for message in file.message_type:
        for field in message.field:
            if field.type_name:
                field.type_name = field.type_name.replace(_ALPHA, _V1)
    for method in file.service[0].method:
        method.input_type = method.input_type.replace(_ALPHA, _V1)
        method.output_type = method.output_type.replace(_ALPHA, _V1)
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindServiceByName(f"{_V1}.{_SERVICE}")
