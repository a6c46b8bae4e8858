"""Patterns: what to look for in memories, kept under a name."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import memory_service_pb2

from mneme_server.capability import Capability, Figure, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.features.memory.patterns.matchers import KeptMatchers
from mneme_server.features.memory.patterns.patterns import Patterns, PatternUsage
from mneme_server.features.memory.patterns.service import PatternCalls
from mneme_server.features.memory.patterns.store import FORGETS, SqlPatterns
from mneme_server.features.memory.search import SearchMemories


def _build(host: Host) -> Parts:
    usage, kept = PatternUsage(), KeptMatchers()
    host.runtime.before_closing(usage.write)
    patterns = Patterns(host.tenants, host.get(SearchMemories), usage, kept)
    descriptor = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]
    return Parts(
        calls=[Service(descriptor, PatternCalls(patterns))],
        offers=[patterns, kept],
        figures=[Figure("patterns", lambda unit: unit.get(SqlPatterns).count())],
        jobs={"pattern-usage": usage.writer(host.tenants)},
        purge=lambda tenant, _found: kept.clear(tenant),
    )


CAPABILITY = Capability(
    name="patterns",
    build=_build,
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
