"""Calls carry the trace context of the application that makes them."""

from __future__ import annotations

import subprocess
import sys

from opentelemetry.sdk.trace import TracerProvider
from unit.client.scripted import EitherClient, ScriptedServer


def test_a_call_within_a_span_carries_its_trace(
    client: EitherClient, served: ScriptedServer
) -> None:
    with TracerProvider().get_tracer("agent").start_as_current_span("turn") as span:
        client.call("recall", "heron")
    context = span.get_span_context()
    carried = served.calls("Recall")[-1].metadata["traceparent"]
    assert carried.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")


def test_a_call_outside_of_any_span_carries_none(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("recall", "heron")
    assert "traceparent" not in served.calls("Recall")[-1].metadata


def test_a_client_imports_nothing_of_opentelemetry() -> None:
    code = (
        "import sys; from mneme._core.tracing import trace_context; assert trace_context() == ();"
        "import mneme.client; assert not [m for m in sys.modules if m.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
