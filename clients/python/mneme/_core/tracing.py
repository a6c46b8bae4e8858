"""The trace that a call belongs to, where the application uses OpenTelemetry."""

from __future__ import annotations

import sys


def trace_context() -> tuple[tuple[str, str], ...]:
    """Return the W3C trace context of the span that is current: what a call carries of it.

    Empty where there is none, and where nobody imported OpenTelemetry: then there can be none.
    """
    if "opentelemetry.trace" not in sys.modules:
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return tuple(carrier.items())
