"""Services whose schemas are other projects': they pass what Mneme's own pass."""

from __future__ import annotations

import grpc
from google.protobuf.descriptor_pool import Default
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from mneme.v1 import auth_pb2
from support.api import Api, refused
from support.server import LocalServer

COLLECTOR = "opentelemetry.proto.collector"
FOREIGN = {
    f"{COLLECTOR}.trace.v1.TraceService": "write",
    f"{COLLECTOR}.logs.v1.LogsService": "write",
    f"{COLLECTOR}.metrics.v1.MetricsService": "write",
}
"""Each with the scope of its methods, so that two people decide who may call it."""
_OURS = ("mneme.v1.", "grpc.")


def call(api: Api, path: str, secret: str | None) -> bytes:
    metadata = [("authorization", f"Bearer {secret}")] if secret else []
    with grpc.insecure_channel(api.address) as channel:
        answer: bytes = channel.unary_unary(path)(b"", metadata=metadata, timeout=60)
    return answer


def test_every_foreign_service_is_in_the_list_and_needs_its_scope(
    server: LocalServer, api: Api
) -> None:
    with grpc.insecure_channel(server.address) as channel:
        names = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert {name for name in names if not name.startswith(_OURS)} == set(FOREIGN)
    for name, scope in FOREIGN.items():
        lacking = server.keys.key(
            api.tenant_id,
            *(
                number
                for key, number in auth_pb2.KeyScope.items()
                if number and key != f"KEY_SCOPE_{scope.upper()}" and key != "KEY_SCOPE_ADMIN"
            ),
        )
        for method in Default().FindServiceByName(name).methods:
            path = f"/{name}/{method.name}"
            assert call(api, path, api.secret) == b""
            for secret, code in (
                (None, grpc.StatusCode.UNAUTHENTICATED),
                (lacking.secret, grpc.StatusCode.PERMISSION_DENIED),
            ):
                with refused() as failure:
                    call(api, path, secret)
                assert failure.code is code
