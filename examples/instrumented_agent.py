"""An agent that does not know Mneme: it is instrumented, and so it is remembered.

In one terminal `make serve`, in another

    OPENAI_API_KEY=… .venv/bin/python examples/instrumented_agent.py "Where is my order 4711?"
    OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none OPENAI_MODEL=qwen3 \\
        .venv/bin/python examples/instrumented_agent.py "Where is my order 4711?"

`agent` calls a model and a tool, and says nothing to any memory. `main` instruments OpenAI's
client, and OpenTelemetry's exporter sends Mneme what it would send any other collector: questions,
answers, calls of tools, tokens, errors. At the end the memory is asked for it. A server with keys
takes one from OTEL_EXPORTER_OTLP_HEADERS (authorization=Bearer%20mn_…) and MNEME_API_KEY.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from uuid import uuid4

from mneme import MnemeClient
from mneme.types import Event
from mneme.visible import visible_line
from openai import OpenAI
from openinference.instrumentation import using_session
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
ORDERS = {4711: {"state": "sent"}, 4712: {"state": "waiting for a part"}}
FIND_ORDER: Any = {
    "type": "function",
    "function": {
        "name": "find_order",
        "description": "Find an order by its number.",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "integer"}},
            "required": ["order"],
        },
    },
}


def main() -> None:
    """Instrument, work, and ask the memory what was done."""
    question = sys.argv[1] if len(sys.argv) > 1 else "Where is my order 4711?"
    session = f"order-desk-{uuid4().hex[:8]}"

    os.environ.setdefault("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:50051")
    provider = TracerProvider(resource=Resource({"service.name": "order-desk"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    with using_session(session):
        print(f"{agent(question)}\n")
    provider.shutdown()  # Sends what is left.

    with MnemeClient() as memory:
        print("What the memory has of it:")
        for event in until_answered(memory, session):
            print(f"  {event.event_type:14} {event.name or event.model:12} {said(event)}")
        found = memory.recall(question, session_id=session, limit=1).results
        print(f"\nRecalled: {visible_line(found[0].text) if found else 'nothing'}")


def agent(question: str) -> str:
    """Answer a customer's question, with a tool to look orders up."""
    messages: list[Any] = [{"role": "user", "content": question}]
    with OpenAI() as model:
        while True:
            answer = model.chat.completions.create(
                model=MODEL, messages=messages, tools=[FIND_ORDER]
            )
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            calls: list[Any] = message.tool_calls or []
            if not calls:
                return message.content or ""
            for call in calls:
                found = ORDERS.get(
                    json.loads(call.function.arguments)["order"], {"state": "unknown"}
                )
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": json.dumps(found)}
                )


def until_answered(memory: MnemeClient, session: str) -> list[Event]:
    """The session's events, once the answer is among them: spans become events a moment later."""
    events = []
    with memory.watch_events(session_id=session, after_cursor="0", timeout=30) as stream:
        for message in stream:
            events.append(message.event)
            if message.event.payload.get("role") == "assistant":
                break
    return events


def said(event: Event) -> str:
    """What the event says, on one line."""
    return visible_line(event.text)[:60]


if __name__ == "__main__":
    main()
