"""A span for every call, part of the trace that its caller says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from mneme_server.common import tracing
from mneme_server.common.tracing import ERROR_TYPE, Attributes, Span, SpanKind
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.pipeline import Layer

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
