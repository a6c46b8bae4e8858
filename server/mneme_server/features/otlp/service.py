"""OpenTelemetry's services."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TypeAlias

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

from mneme_server.common import turns
from mneme_server.edge.grpc.call import Call
from mneme_server.features.otlp.intake import TakeTelemetry
from mneme_server.features.otlp.messages import logs_of, spans_of

Exported: TypeAlias = (
    trace_pb.ExportTraceServiceRequest
    | logs_pb.ExportLogsServiceRequest
    | metrics_pb.ExportMetricsServiceRequest
)
"""What is exported at a time."""


def items_in(request: Exported) -> int:
    """Return how many spans or log records are exported; metrics, which are not read, are none."""
    if isinstance(request, trace_pb.ExportTraceServiceRequest):
        return sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans)
    if isinstance(request, logs_pb.ExportLogsServiceRequest):
        return sum(len(s.log_records) for r in request.resource_logs for s in r.scope_logs)
    return 0


class _Servicer:
    """Takes what was exported."""

    def __init__(self, take: TakeTelemetry) -> None:
        self._take = take

    def _computing(self, request: Exported) -> AbstractContextManager[None]:
        """Read what was exported, once it is its turn."""
        return turns.computing(max(1.0, items_in(request) / 100))


class TraceServicer(_Servicer):
    """Serves `opentelemetry.proto.collector.trace.v1.TraceService`."""

    def Export(
        self, request: trace_pb.ExportTraceServiceRequest, call: Call
    ) -> trace_pb.ExportTraceServiceResponse:
        """Take spans."""
        with self._computing(request):
            spans = list(spans_of(request))
        taken = self._take.take(call.tenant, spans)
        answer = trace_pb.ExportTraceServiceResponse()
        if taken.refused:
            answer.partial_success.rejected_spans = taken.refused_count
            answer.partial_success.error_message = taken.reasons()
        return answer


class LogsServicer(_Servicer):
    """Serves `opentelemetry.proto.collector.logs.v1.LogsService`."""

    def Export(
        self, request: logs_pb.ExportLogsServiceRequest, call: Call
    ) -> logs_pb.ExportLogsServiceResponse:
        """Take log records; those that hold nothing of a model's call become nothing."""
        with self._computing(request):
            records = list(logs_of(request))
        taken = self._take.take(call.tenant, records)
        answer = logs_pb.ExportLogsServiceResponse()
        if taken.refused:
            answer.partial_success.rejected_log_records = taken.refused_count
            answer.partial_success.error_message = taken.reasons()
        return answer


class MetricsServicer:
    """Serves `opentelemetry.proto.collector.metrics.v1.MetricsService`, which keeps nothing: so
    that exporters that send metrics too have nothing to complain about."""

    def Export(
        self, request: metrics_pb.ExportMetricsServiceRequest, call: Call
    ) -> metrics_pb.ExportMetricsServiceResponse:
        """Take metrics, and drop them."""
        return metrics_pb.ExportMetricsServiceResponse()
