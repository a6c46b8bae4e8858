"""Prometheus metrics: what is counted, and the HTTP endpoint that shows it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from wsgiref.simple_server import WSGIServer

import grpc
import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from mneme_server.common.address import ListenError, join_host_port, split_host_port
from mneme_server.edge.grpc.methods import Method

_log = structlog.get_logger(__name__)

_LATENCY_BUCKETS_S = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


class Metrics:
    """The metrics of one server, in a registry of their own.

    Labels are methods and status codes. Tenants are none: there may be thousands of them, and
    each label value is a series that Prometheus keeps.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._calls = Counter(
            "mneme_grpc_calls",
            "Calls that have ended, by method and status code.",
            ("service", "method", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "mneme_grpc_call_seconds",
            "Time from a call's start in a worker to its end, by method.",
            ("service", "method"),
            buckets=_LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        # Looking a series up by its labels costs as much as counting in it.
        self._series: dict[tuple[str, grpc.StatusCode], tuple[Counter, Histogram]] = {}

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Show `value()`, asked for at each scrape, as the gauge `name`."""
        Gauge(name, description, registry=self.registry).set_function(value)

    def call_ended(self, method: Method, code: grpc.StatusCode, seconds: float) -> None:
        """Count a call that has ended."""
        series = self._series.get((method.path, code))
        if series is None:
            series = (
                self._calls.labels(method.service, method.name, code.name),
                self._seconds.labels(method.service, method.name),
            )
            self._series[method.path, code] = series
        count, time = series
        count.inc()
        time.observe(seconds)


class MetricsEndpoint:
    """The HTTP endpoint `/metrics`.

    Args:
        metrics: what it shows.
        listen: `host:port`; port 0 picks a free one.
        by_default: nobody chose the address: where another server on the machine has it, a free
            port is taken.

    Raises:
        ListenError: the address, which somebody chose, cannot be had.
    """

    def __init__(self, metrics: Metrics, listen: str, *, by_default: bool = False) -> None:
        host, port = split_host_port(listen)
        try:
            started = _serving(metrics, host, port)
        except OSError as error:
            why = error.strerror or str(error)
            if not by_default:
                raise ListenError("MNEME_METRICS_LISTEN", listen, why) from error
            started = _serving(metrics, host, 0)
            _log.warning(
                "metrics are at another port: the usual one cannot be had; choose one with"
                " MNEME_METRICS_LISTEN",
                listen=listen, why=why, metrics=join_host_port(host, started[0].server_port),
            )  # fmt: skip
        self._server, self._thread = started
        self.address = join_host_port(host, self._server.server_port)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _serving(metrics: Metrics, host: str, port: int) -> tuple[WSGIServer, threading.Thread]:
    return start_http_server(port, addr=host, registry=metrics.registry)
