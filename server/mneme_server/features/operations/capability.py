"""Operations: work that outlasts a call. Kinds of them are brought by later capabilities."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import operation_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.operations import Operations
from mneme_server.features.operations.service import OperationServicer
from mneme_server.features.operations.store import SqlOperations

_WAITING_SHARE = 8
"""One in so many of the server's threads may be held by calls that wait for an operation."""


def _build(host: Host) -> Parts:
    operations = Operations(
        SqlOperations(host.get(Database)),
        host.runtime.jobs,
        places=max(1, host.settings(ServerSettings).workers // _WAITING_SHARE),
        leases=host.runtime.servers.leases,
    )
    kinds = OperationKinds(operations)
    servicer = OperationServicer(operations, kinds)
    descriptor = operation_service_pb2.DESCRIPTOR.services_by_name["OperationService"]
    return Parts(
        services=[Service(descriptor, servicer)],
        offers=[operations, kinds],
    )


CAPABILITY = Capability(
    name="operations",
    build=_build,
    catalog_migrations=Path(__file__).parent / "migrations",
)
