"""Agents that nobody told of Mneme: an instrumentation, the exporter of OpenTelemetry, and
environment variables are all that they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import openai
import pytest
from integration.test_telemetry import until
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as OpenTelemetry
from opentelemetry.instrumentation.openai import OpenAIInstrumentor as Traceloop
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from support.api import Api
from support.making import ids_of, list_events, recall, session_of
from support.model import ANSWER, QUESTION, RESULT, serving_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with serving_model() as address:
        yield address


INSTRUMENTATIONS = {
    "openinference": OpenInference,
    "opentelemetry": OpenTelemetry,
    "traceloop": Traceloop,
}


@contextmanager
def instrumented(kind: str, monkeypatch: pytest.MonkeyPatch, api: Api) -> Iterator[TracerProvider]:
    """Have OpenAI's client instrumented, and its spans exported to a tenant."""
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{api.address}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={quote(f'Bearer {api.secret}')}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    }.items():
        monkeypatch.setenv(name, value)
    provider = TracerProvider(resource=Resource({"service.name": "order-desk"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    instrumentor = INSTRUMENTATIONS[kind]()
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield provider
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def work(client: openai.OpenAI, provider: TracerProvider) -> None:
    """What an agent does: it asks a model, calls a tool, and asks again with all of it."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with provider.get_tracer("agent").start_as_current_span("turn"):
        for _ in range(2):
            answer = client.chat.completions.create(model="gpt-x", messages=messages)
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": RESULT}
                for call in said.tool_calls or ()
            ]


@pytest.mark.parametrize("kind", INSTRUMENTATIONS)
def test_what_an_instrumented_agent_did_is_remembered(
    kind: str, api: Api, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with instrumented(kind, monkeypatch, api) as provider:
        client = openai.OpenAI(base_url=model, api_key="none", max_retries=0)
        work(client, provider)
        provider.force_flush()
        until(lambda: len(list_events(api)) >= 6)
    events = list_events(api)
    assert [e.event_type for e in events] == [
        "message", "llm_call", "tool_call", "tool_response", "llm_call", "message",
    ]  # fmt: skip
    asked, first, call, answer, second, said = events
    assert (asked.text, said.text) == (QUESTION, ANSWER)
    assert (call.name, call.call_id, call.payload["arguments"]["order"]) == (
        "find_order", "call_9f3b", 4711,
    )  # fmt: skip
    assert (answer.name, answer.call_id) == ("find_order", "call_9f3b")
    assert {one.model for one in (first, second)} == {"gpt-x-2026"}
    (session_id,) = {e.session_id for e in events}
    session = session_of(api, session_id)
    assert (session.llm_call_count, session.tool_call_count) == (2, 1)
    assert (session.total_input_tokens, session.total_output_tokens) == (40, 18)
    assert session.agent_id == "order-desk"
    assert said.id in ids_of(recall(api, "when did the order leave the warehouse"))


@pytest.mark.parametrize("kind", INSTRUMENTATIONS)
def test_a_call_that_fails_is_an_error_of_its_session(
    kind: str, api: Api, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with instrumented(kind, monkeypatch, api) as provider:
        client = openai.OpenAI(base_url=model, api_key="none", max_retries=0)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(
                model="broken", messages=[{"role": "user", "content": QUESTION}]
            )
        provider.force_flush()
        until(lambda: len(list_events(api)) >= 2)
    (failed,) = [e for e in list_events(api) if e.event_type == "llm_call"]
    assert "no such model" in failed.error
    assert session_of(api, failed.session_id).error_count == 1
