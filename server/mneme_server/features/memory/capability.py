"""Memories: what agents remember, apart from any session."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import memory_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.memory.forgetting import FORGETS
from mneme_server.features.memory.insertion import CreateMemories, Similar, Vectors
from mneme_server.features.memory.memories import DeleteMemories, Memories
from mneme_server.features.memory.model import MEMORY, MemoryFilter
from mneme_server.features.memory.search import SearchMemories
from mneme_server.features.memory.service import MemoryServicer
from mneme_server.features.memory.store import MEMORY_DETAILS, SqlMemories
from mneme_server.features.recall.search import Recall

_MEMORIES = Figure(
    "memories", lambda unit: unit.get(SqlMemories).count(MemoryFilter(include_superseded=True))
)


def _build(host: Host) -> Parts:
    runtime = host.runtime
    vectors = Vectors(runtime.writing, runtime.embedder)
    similar = Similar(host.get(Recall).scale)
    insert = CreateMemories(host.tenants, vectors, similar)
    delete = DeleteMemories(host.tenants, host.dependents)
    search = SearchMemories(host.tenants, runtime.questions)
    servicer = MemoryServicer(
        insert=insert,
        memories=Memories(host.tenants, vectors),
        search=search,
        delete=delete,
        dimension=runtime.model.dimensions,
        watchdog=runtime.watchdog,
    )
    descriptor = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]
    return Parts(
        services=[Service(descriptor, servicer)],
        offers=[insert, delete, search],
        figures=[_MEMORIES],
    )


CAPABILITY = Capability(
    name="memory",
    build=_build,
    kinds={MEMORY: MEMORY_DETAILS},
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
