"""OpenTelemetry: what instrumented agents send becomes events of sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from mneme_server.capability import Capability, Gauge, Host, Parts
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.service import Needs, Service
from mneme_server.features.events.recording import RecordEvents
from mneme_server.features.otlp.ingest_worker import JOB, TelemetryWorker
from mneme_server.features.otlp.intake import TakeTelemetry
from mneme_server.features.otlp.service import (
    LogsServicer,
    MetricsServicer,
    TraceServicer,
    items_in,
)
from mneme_server.features.otlp.settings import TelemetrySettings
from mneme_server.features.otlp.store import FORGETS

NEEDS = Needs(
    scope=KeyScope.WRITE,
    parts=frozenset(
        f"opentelemetry.proto.{name}"
        for name in ("trace.v1.Span", "logs.v1.LogRecord", "metrics.v1.Metric")
    ),
    items=items_in,
)
"""What every method of these services needs: their schemas are not Mneme's and cannot say it."""


def _build(host: Host) -> Parts:
    settings = host.settings(TelemetrySettings)
    take = TakeTelemetry(
        host.tenants,
        partial(host.runtime.wake, JOB),
        settings.otlp_wait_seconds,
        settings.otlp_inbox_bytes,
    )
    worker = TelemetryWorker(host.tenants.open, host.get(RecordEvents), settings.otlp_wait_seconds)
    servicers = {
        trace_service_pb2.DESCRIPTOR.services_by_name["TraceService"]: TraceServicer(take),
        logs_service_pb2.DESCRIPTOR.services_by_name["LogsService"]: LogsServicer(take),
        metrics_service_pb2.DESCRIPTOR.services_by_name["MetricsService"]: MetricsServicer(),
    }
    return Parts(
        services=[
            Service(descriptor, servicer, NEEDS) for descriptor, servicer in servicers.items()
        ],
        offers=[take],
        gauges=[
            Gauge(
                "mneme_otlp_exports_refused",
                "Exports of telemetry that were refused since the start, because too much of the"
                " tenant's waited to become events.",
                lambda: take.refused.count,
            )
        ],
        jobs={JOB: worker},
        forgetting=worker.while_forgetting,
    )


CAPABILITY = Capability(
    name="otlp",
    build=_build,
    migrations=Path(__file__).parent / "migrations",
    forgets=FORGETS,
)
