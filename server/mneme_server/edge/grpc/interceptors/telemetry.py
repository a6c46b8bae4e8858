"""A log line and metrics for every call."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import structlog
from structlog.typing import FilteringBoundLogger

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.metrics import Metrics
from mneme_server.edge.grpc.pipeline import Layer

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
"""As W3C's Trace Context has it."""


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
