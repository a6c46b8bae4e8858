"""A log line, metrics and a span for every call; the span belongs to its caller's
trace."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import structlog
from structlog.typing import FilteringBoundLogger

from mneme_server.common import tracing
from mneme_server.common.tracing import ERROR_TYPE, Attributes, Span, SpanKind
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.metrics import Metrics
from mneme_server.edge.grpc.pipeline import Layer

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
"""As W3C's Trace Context has it."""


_FAILURES = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What is the server's failure, by OpenTelemetry's conventions; the others are the caller's."""


def telemetry(metrics: Metrics) -> Layer:
    """Return the layer that counts, times and logs calls. It must be outside those that refuse."""
    log: FilteringBoundLogger = structlog.get_logger().bind()  # Once, not for each call.

    @contextmanager
    def observe(call: Call) -> Iterator[None]:
        started = time.perf_counter()
        code = grpc.StatusCode.OK
        try:
            yield
            if call.cancelled:
                code = call.abandoned_code
        except BaseException:
            # An error that nobody gave a status means that the caller went away.
            code = call.code or call.abandoned_code
            raise
        finally:
            seconds = time.perf_counter() - started
            metrics.call_ended(call.method, code, seconds)
            if log.is_enabled_for(logging.INFO):
                log.info("call", **_facts(call, code, seconds))

    return observe


def _facts(call: Call, code: grpc.StatusCode, seconds: float) -> dict[str, object]:
    facts: dict[str, object] = {
        "method": call.method.path,
        "tenant": call.tenant_id,
        "code": code.name,
        "ms": round(seconds * 1000, 3),
        "request_id": call.request_id,
        "peer": call.peer,
    }
    if trace := call.trace_id or _trace_of(call):
        facts["trace_id"] = trace
    if call.reason:
        facts["reason"] = call.reason
    if call.error_id:
        facts["error_id"] = call.error_id
    return facts


def _trace_of(call: Call) -> str:
    """Return the trace that the caller says the call belongs to; empty when it says none."""
    said = call.headers.get("traceparent")
    found = _TRACEPARENT.fullmatch(said) if isinstance(said, str) else None
    return found[1] if found else ""


def traced(root: Span) -> Layer:
    """Return the layer that tells of calls; it must be outside those that refuse.

    Exports of telemetry are not told of, nor what needs no key: a server that exports to itself, or
    through a collector that hands on to it, would have something to tell for ever.

    Args:
        root: of which calls without a trace of their own are parts.
    """

    @contextmanager
    def trace(call: Call) -> Iterator[None]:
        span = root.child(
            call.method.path[1:], _known(call), kind=SpanKind.SERVER, headers=call.headers
        )
        call.trace_id = span.trace_id
        tracing.enter(span)
        code = grpc.StatusCode.OK
        try:
            yield
            if call.cancelled:
                code = call.abandoned_code
        except BaseException:
            code = call.code or call.abandoned_code
            raise
        finally:
            tracing.leave()
            span.tell(_outcome(call, code))
            span.end(call.reason or code.name if code in _FAILURES else "")

    return lambda call: trace(call) if call.method.is_traced else None


def _known(call: Call) -> Attributes:
    """Return what is known of a call before it is served: its sampler may look at it."""
    over_http = call.peer.startswith("http:")
    return {
        "rpc.system.name": "http" if over_http else "grpc",
        "rpc.method": call.method.path[1:],
        "mneme.request_id": call.request_id,
    }


def _outcome(call: Call, code: grpc.StatusCode) -> Attributes:
    said = {"rpc.response.status_code": code.name}
    if call.reason:
        said[ERROR_TYPE] = call.reason
    if call.tenant_id:
        said["mneme.tenant"] = call.tenant_id
    if call.error_id:
        said["mneme.error_id"] = call.error_id
    return said
