"""The calls of MemoryService that concern a tenant's memory as a whole."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as pb

from mneme_server.common.errors import PermissionDenied
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.features.memory.upkeep import messages as convert
from mneme_server.features.memory.upkeep.model import CacheKind
from mneme_server.features.memory.upkeep.upkeep import BeginMemory, ClearCaches, ReportMemory

_MS = 1_000


class UpkeepCalls:
    """Serves what `mneme.v1.MemoryService` says of a tenant's memory as a whole.

    `services` are the names of what the server offers.
    """

    def __init__(
        self,
        begin: BeginMemory,
        report: ReportMemory,
        clear: ClearCaches,
        services: Sequence[str],
    ) -> None:
        self._begin = begin
        self._report = report
        self._clear = clear
        self._services = services

    def OpenMemory(self, request: pb.OpenMemoryRequest, call: Call) -> memory_pb.OpenMemoryResponse:
        """Make the memory ready, or empty."""
        began = time.perf_counter()
        if request.reset and KeyScope.ADMIN not in call.caller.scopes:
            raise PermissionDenied(
                "to reset a tenant requires scope admin",
                field="reset",
                metadata={"required_scope": "admin"},
            )
        report, backup = self._begin.begin(
            call.tenant,
            model=request.model,
            dimensions=request.dimension,
            reset=request.reset,
            confirmed=request.confirm_tenant_id,
        )
        return memory_pb.OpenMemoryResponse(
            database=convert.database(report.database),
            counts=convert.counts(report),
            embeddings=convert.embeddings(report.embeddings),
            index=convert.index(report.index, report.database.sizes.indexes),
            capabilities=sorted(self._services),
            backup=backup,
            took_ms=(time.perf_counter() - began) * _MS,
        )

    def GetMemoryStats(
        self, request: pb.GetMemoryStatsRequest, call: Call
    ) -> memory_pb.GetMemoryStatsResponse:
        """Say what there is."""
        began = time.perf_counter()
        report = self._report.report(
            call.tenant,
            distribution=request.include_distribution,
            quality=request.include_quality,
        )
        took_s = time.perf_counter() - began
        return convert.stats(report, took_s, quality=request.include_quality)

    def ClearCache(self, request: pb.ClearCacheRequest, call: Call) -> pb.ClearCacheResponse:
        """Clear caches."""
        began = time.perf_counter()
        wanted = request.caches or [CacheKind.EMBEDDINGS]
        cleared = self._clear.clear(
            call.tenant,
            list(dict.fromkeys(CacheKind(number) for number in wanted)),
            older_days=request.older_than_days,
            vacuum=request.vacuum,
        )
        return convert.cleared(cleared, time.perf_counter() - began)
