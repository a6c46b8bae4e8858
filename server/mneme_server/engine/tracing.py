"""Spans that are exported, as OpenTelemetry's variables say: here alone its SDK is imported."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from mneme._extras import from_wheels

from mneme_server.common import tracing
from mneme_server.common.address import is_loopback, is_unix, join_host_port, split_host_port
from mneme_server.common.errors import FailedPrecondition
from mneme_server.common.tracing import NOTHING, Attributes, Span, SpanKind

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as Reported
    from opentelemetry.trace import Tracer

_log = structlog.get_logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES = frozenset({"true", "span_only", "span_and_event"})
_SERVICE = "mneme"
_FLUSH_S = 3.0
"""How long what was not exported yet may take at the end: the process has ten seconds to close."""
_PORTS = {"http": 80, "https": 443}
_EVERYWHERE = ("0.0.0.0", "::")


class Spans:
    """Where spans go: `root` begins them, and `close` sends those that were not sent yet."""

    def __init__(self, root: Span = NOTHING) -> None:
        self.root = root

    def close(self) -> None:
        """Send what was not sent yet, and end. Returns soon, whoever does not answer."""


def spans_from(environment: Mapping[str, str], listens: Sequence[str], version: str) -> Spans:
    """Return where spans go by OpenTelemetry's variables: nowhere, unless they name an endpoint.

    Args:
        environment: the process's variables.
        listens: the addresses that this server takes telemetry at. Its own spans do not go there.
        version: the server's.

    Raises:
        FailedPrecondition: what exports is not installed, or cannot do what the variables say, or
            the endpoint is no address.
    """
    endpoint = _first(environment, _ENDPOINTS)
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if not endpoint or off or _first(environment, ["OTEL_TRACES_EXPORTER"]) == "none":
        return Spans()
    if any(_is_at(endpoint, listen) for listen in listens):
        # Whoever set the variables for an agent in this shell started the server in it, too.
        _log.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is this server itself: its own spans are not exported",
            endpoint=endpoint,
        )
        return Spans()
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise _not_installed(endpoint)
    try:
        exporter = _exporter(_first(environment, _PROTOCOLS) or "http/protobuf")
    except ImportError as error:
        raise _not_installed(endpoint) from error
    return _Exported(
        exporter, version, tells_texts=environment.get(_CAPTURE, "").strip().lower() in _CAPTURES
    )


def spans_of_process(listens: Sequence[str], version: str) -> Spans:
    """Return where this process's spans go; see `spans_from`."""
    return spans_from(os.environ, listens, version)


class _Exported(Spans):
    """Spans that go to an exporter, in batches, from a thread of its own."""

    def __init__(self, exporter: SpanExporter, version: str, *, tells_texts: bool) -> None:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.version": version})
        if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: _SERVICE}))
        # It samples as OTEL_TRACES_SAMPLER says. It is no global one: who embeds the server may
        # have that.
        self._provider: TracerProvider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = self._provider.get_tracer("mneme", version)
        super().__init__(_Root(tracer, tells_texts=tells_texts))

    def close(self) -> None:
        """See Spans."""
        ending = threading.Thread(target=self._provider.shutdown, name="spans-end", daemon=True)
        ending.start()
        ending.join(_FLUSH_S)
        if ending.is_alive():
            _log.warning("the last spans were not taken in time; they are lost")


class _Root:
    """What spans are parts of that are part of nothing else."""

    is_told = True
    trace_id = ""

    def __init__(self, tracer: Tracer, *, tells_texts: bool) -> None:
        self._tracer = tracer
        self.tells_texts = tells_texts

    def child(
        self,
        name: str,
        attributes: Attributes = tracing.NO_ATTRIBUTES,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        began_ns: int | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Span:
        """See Span."""
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {k: v for k, v in (headers or {}).items() if isinstance(v, str)}
        context = TraceContextTextMapPropagator().extract(carrier, Context())
        return self._begin(name, attributes, kind, began_ns, context)

    def tell(self, attributes: Attributes) -> None:
        """See Span: it has none."""

    def end(self, error: str = "") -> None:
        """See Span: it does not end."""

    def _begin(
        self, name: str, attributes: Attributes, kind: SpanKind, began_ns: int | None, context: Any
    ) -> Span:
        from opentelemetry.trace import SpanKind as ReportedKind

        span = self._tracer.start_span(
            name, context, ReportedKind[kind.name], attributes, start_time=began_ns
        )
        return _Told(self, span)


class _Told:
    """A span."""

    def __init__(self, root: _Root, span: Reported) -> None:
        self._root = root
        self._span = span
        self.is_told = span.is_recording()
        self.tells_texts = self.is_told and root.tells_texts

    @property
    def trace_id(self) -> str:
        """See Span."""
        return format(self._span.get_span_context().trace_id, "032x")

    def child(
        self,
        name: str,
        attributes: Attributes = tracing.NO_ATTRIBUTES,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        began_ns: int | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Span:
        """See Span."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        if headers:
            return self._root.child(name, attributes, kind=kind, began_ns=began_ns, headers=headers)
        context = set_span_in_context(self._span, Context())
        return self._root._begin(name, attributes, kind, began_ns, context)

    def tell(self, attributes: Attributes) -> None:
        """See Span."""
        self._span.set_attributes(attributes)

    def end(self, error: str = "") -> None:
        """See Span."""
        from opentelemetry.trace import Status, StatusCode

        if error:
            self._span.set_attribute(tracing.ERROR_TYPE, error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


def _exporter(protocol: str) -> SpanExporter:
    """Return what exports by a protocol; it reads the endpoint and its own options by itself.

    Raises:
        ImportError: it is not installed.
        FailedPrecondition: there is no such protocol.
    """
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as OverGrpc,
        )

        return OverGrpc()
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter as OverHttp,
        )

        return OverHttp()
    raise FailedPrecondition(
        f"{_PROTOCOLS[1]}={protocol} is none that spans are exported by: grpc or http/protobuf"
    )


def _not_installed(endpoint: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"{_ENDPOINTS[1]} names {endpoint}, and what exports spans is not installed. Unset the"
        f" variable, set OTEL_TRACES_EXPORTER=none, or install it {from_wheels('server,otel')}"
    )


def _first(environment: Mapping[str, str], names: Sequence[str]) -> str:
    return next((said for name in names if (said := environment.get(name, "").strip())), "")


def _is_at(endpoint: str, listen: str) -> bool:
    """Tell whether an endpoint is an address that the server listens on, as far as the words go.

    Raises:
        FailedPrecondition: it is no address.
    """
    if not listen or is_unix(listen):
        return False
    try:
        parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        host = parts.hostname or ""
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise FailedPrecondition(
            f"{_ENDPOINTS[1]} names {endpoint}, which is no address: {error}"
        ) from error
    mine, my_port = split_host_port(listen)
    if port != my_port:
        return False
    here = bool(host) and is_loopback(join_host_port(host, port))
    return host == mine or (here and (is_loopback(listen) or mine in _EVERYWHERE))
