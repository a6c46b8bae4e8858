"""The table of what becomes what: the attributes of four dialects, and what Mneme makes of them.

It is data. `spans.py` reads spans by it, and the table in the documentation is generated from it.
Of several names the first that a span has is taken, in the order of the dialects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mneme_server.features.otlp.model import TelemetryKind


class Dialect(StrEnum):
    """A set of attributes; the value names it to people."""

    GEN_AI = "OpenTelemetry"
    OPENINFERENCE = "OpenInference"
    LANGSMITH = "LangSmith"
    VERCEL = "Vercel AI SDK"


class SpanField(StrEnum):
    """What Mneme wants to know of a span."""

    SESSION = "session"
    USER = "user"
    AGENT = "agent"
    MODEL = "model"
    PROVIDER = "provider"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    COST = "cost"
    SYSTEM = "system"
    INPUT = "input"
    OUTPUT = "output"
    OUTPUT_TEXT = "output_text"
    OUTPUT_CALLS = "output_calls"
    TOOL = "tool"
    CALL_ID = "call_id"
    ARGUMENTS = "arguments"
    RESULT = "result"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Args:
        field: what is wanted.
        becomes: what it becomes, for people.
        names: the attributes that say it, by dialect. One that ends with "." is a list that was
            flattened: what follows is a number, and then names within it.
    """

    field: SpanField
    becomes: str
    names: Mapping[Dialect, tuple[str, ...]]


_G, _O, _L, _V = Dialect.GEN_AI, Dialect.OPENINFERENCE, Dialect.LANGSMITH, Dialect.VERCEL

ROWS: tuple[Row, ...] = (
    Row(
        SpanField.SESSION,
        "the session of the span and of all below it; without one, the session is the trace's",
        {
            _G: (
                "gen_ai.conversation.id",
                "traceloop.association.properties.session_id",
                "traceloop.association.properties.conversation_id",
                "traceloop.association.properties.thread_id",
            ),
            _O: ("session.id",),
            _L: (
                "langsmith.metadata.session_id",
                "langsmith.metadata.conversation_id",
                "langsmith.metadata.thread_id",
            ),
            _V: (
                "ai.telemetry.metadata.sessionId",
                "ai.telemetry.metadata.session_id",
                "ai.telemetry.metadata.conversationId",
                "ai.telemetry.metadata.threadId",
                "ai.telemetry.metadata.chatId",
            ),
        },
    ),
    Row(
        SpanField.USER,
        "the session's user (`user_id` in the events' metadata)",
        {
            _G: ("user.id", "enduser.id", "traceloop.association.properties.user_id"),
            _O: ("user.id",),
            _L: ("langsmith.metadata.user_id",),
            _V: ("ai.telemetry.metadata.userId", "ai.telemetry.metadata.user_id"),
        },
    ),
    Row(
        SpanField.AGENT,
        "`agent_id`; without one, the resource's `service.name`",
        {
            _G: ("gen_ai.agent.id", "gen_ai.agent.name", "agent_name"),
            _O: ("agent.name",),
            _L: ("langsmith.metadata.agent_id",),
            _V: ("ai.telemetry.functionId",),
        },
    ),
    Row(
        SpanField.MODEL,
        "`model`",
        {
            _G: ("gen_ai.response.model", "gen_ai.request.model"),
            _O: (
                "llm.model_name",
                "llm.response.model_name",
                "llm.request.model_name",
                "embedding.model_name",
            ),
            _L: ("langsmith.metadata.ls_model_name",),
            _V: ("ai.response.model", "ai.model.id"),
        },
    ),
    Row(
        SpanField.PROVIDER,
        "`provider` in the payload",
        {
            _G: ("gen_ai.provider.name", "gen_ai.system"),
            _O: ("llm.provider", "llm.system"),
            _L: ("langsmith.metadata.ls_provider",),
            _V: ("ai.model.provider",),
        },
    ),
    Row(
        SpanField.INPUT_TOKENS,
        "`input_tokens`",
        {
            _G: ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            _O: ("llm.token_count.prompt",),
            _L: ("llm.usage.prompt_tokens",),
            _V: ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        },
    ),
    Row(
        SpanField.OUTPUT_TOKENS,
        "`output_tokens`",
        {
            _G: ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            _O: ("llm.token_count.completion",),
            _L: ("llm.usage.completion_tokens",),
            _V: ("ai.usage.outputTokens", "ai.usage.completionTokens"),
        },
    ),
    Row(
        SpanField.COST,
        "`cost_usd`",
        {
            _G: ("gen_ai.usage.cost", "operation.cost"),
            _O: ("llm.cost.total",),
            _L: ("langsmith.usage.total_cost", "gen_ai.usage.total_cost"),
            _V: (),
        },
    ),
    Row(
        SpanField.SYSTEM,
        "a `message` whose role is system, before the others",
        {_G: ("gen_ai.system_instructions",), _O: (), _L: (), _V: ()},
    ),
    Row(
        SpanField.INPUT,
        "a `message` each; a tool's answer among them becomes a `tool_response`",
        {
            _G: (
                "gen_ai.input.messages",
                "gen_ai.request.messages",
                "gen_ai.prompt.",
                "gen_ai.prompt",
                "events",
            ),
            _O: ("llm.input_messages.", "llm.prompts.", "input.value"),
            _L: ("langsmith.inputs", "inputs"),
            _V: ("ai.prompt.messages", "ai.prompt"),
        },
    ),
    Row(
        SpanField.OUTPUT,
        "a `message` of the assistant; calls of tools in it become `tool_call` events",
        {
            _G: ("gen_ai.output.messages", "gen_ai.completion.", "gen_ai.completion"),
            _O: ("llm.output_messages.", "llm.choices.", "output.value"),
            _L: ("langsmith.outputs", "outputs"),
            _V: (),
        },
    ),
    Row(
        SpanField.OUTPUT_TEXT,
        "the text of the assistant's `message`",
        {
            _G: (),
            _O: (),
            _L: (),
            _V: ("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object"),
        },
    ),
    Row(
        SpanField.OUTPUT_CALLS,
        "a `tool_call` each",
        {_G: (), _O: (), _L: (), _V: ("ai.response.toolCalls", "ai.result.toolCalls")},
    ),
    Row(
        SpanField.TOOL,
        "`name` of `tool_call`, `tool_response` and `tool_error`; else the span's name",
        {
            _G: ("gen_ai.tool.name", "traceloop.entity.name"),
            _O: ("tool.name", "tool_call.function.name"),
            _L: ("langsmith.trace.name",),
            _V: ("ai.toolCall.name",),
        },
    ),
    Row(
        SpanField.CALL_ID,
        "`call_id`",
        {
            _G: ("gen_ai.tool.call.id",),
            _O: ("tool_call.id", "tool.id"),
            _L: ("langsmith.metadata.tool_call_id",),
            _V: ("ai.toolCall.id",),
        },
    ),
    Row(
        SpanField.ARGUMENTS,
        "`arguments` in the payload of `tool_call`",
        {
            _G: (
                "gen_ai.tool.call.arguments",
                "tool_arguments",
                "gen_ai.retrieval.query.text",
                "traceloop.entity.input",
            ),
            _O: ("tool_call.function.arguments", "input.value"),
            _L: ("gen_ai.prompt", "langsmith.inputs", "inputs"),
            _V: ("ai.toolCall.args", "ai.toolCall.input"),
        },
    ),
    Row(
        SpanField.RESULT,
        "`result` in the payload of `tool_response`",
        {
            _G: (
                "gen_ai.tool.call.result",
                "tool_response",
                "gen_ai.retrieval.documents",
                "traceloop.entity.output",
            ),
            _O: ("output.value", "retrieval.documents.", "reranker.output_documents."),
            _L: ("gen_ai.completion", "langsmith.outputs", "outputs"),
            _V: ("ai.toolCall.result", "ai.toolCall.output"),
        },
    ),
    Row(
        SpanField.ERROR,
        "`error`, of a `tool_error`, an `llm_call` with severity ERROR, or an `error`; before it"
        " come an exception event's message and the status's",
        {_G: ("error.type",), _O: ("exception.message",), _L: ("langsmith.error",), _V: ()},
    ),
)
"""What becomes what."""

BY_FIELD: Mapping[SpanField, tuple[str, ...]] = {
    row.field: tuple(dict.fromkeys(name for names in row.names.values() for name in names))
    for row in ROWS
}
"""All names of a field, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """An attribute that tells what a span is, and its values; others say nothing."""

    dialect: Dialect
    attribute: str
    values: Mapping[TelemetryKind, tuple[str, ...]]


KINDS: tuple[KindRow, ...] = (
    KindRow(
        _O,
        "openinference.span.kind",
        {
            TelemetryKind.MODEL: ("LLM",),
            TelemetryKind.TOOL: ("TOOL", "RETRIEVER", "RERANKER"),
            TelemetryKind.AGENT: ("AGENT", "CHAIN", "GUARDRAIL", "EVALUATOR", "UNKNOWN"),
        },
    ),
    KindRow(
        _V,
        "ai.operationId",
        {
            TelemetryKind.MODEL: (
                "ai.generateText.doGenerate",
                "ai.streamText.doStream",
                "ai.generateObject.doGenerate",
                "ai.streamObject.doStream",
            ),
            TelemetryKind.TOOL: ("ai.toolCall",),
            TelemetryKind.AGENT: (
                "ai.generateText",
                "ai.streamText",
                "ai.generateObject",
                "ai.streamObject",
                "ai.embed",
                "ai.embedMany",
            ),
        },
    ),
    KindRow(
        _L,
        "langsmith.span.kind",
        {
            TelemetryKind.MODEL: ("llm",),
            TelemetryKind.TOOL: ("tool", "retriever"),
            TelemetryKind.AGENT: ("chain", "agent", "parser", "prompt"),
        },
    ),
    KindRow(
        _G,
        "gen_ai.operation.name",
        {
            TelemetryKind.MODEL: ("chat", "text_completion", "generate_content", "completion"),
            TelemetryKind.TOOL: ("execute_tool", "retrieval"),
            TelemetryKind.AGENT: ("invoke_agent", "create_agent", "invoke_workflow"),
        },
    ),
    KindRow(
        _G,
        "traceloop.span.kind",
        {TelemetryKind.TOOL: ("tool",), TelemetryKind.AGENT: ("workflow", "task", "agent")},
    ),
    KindRow(_G, "llm.request.type", {TelemetryKind.MODEL: ("chat", "completion")}),
)
"""What tells what a span is, in the order in which they are asked."""

MESSAGE_EVENTS: Mapping[str, str] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
"""Events and log records that hold one message each, with its role."""

DETAIL_EVENTS = frozenset(
    {
        "gen_ai.client.inference.operation.details",
        "gen_ai.content.prompt",
        "gen_ai.content.completion",
    }
)
"""Events and log records whose attributes belong to their span."""

PREFIXES = (
    "gen_ai.", "ai.", "llm.", "openinference.", "langsmith.", "traceloop.", "tool.", "tool_call.",
    "input.value", "output.value", "session.id", "user.id", "enduser.id", "agent.name",
    "agent_name", "embedding.model_name", "retrieval.documents.", "reranker.output_documents.",
    "tool_arguments", "tool_response", "operation.cost", "error.type", "exception.message",
    "events", "inputs", "outputs", "event.name",
)  # fmt: skip
"""What the names of attributes begin with that are kept; the others are not even stored."""


def all_names() -> Iterator[str]:
    """Yield every attribute of the table."""
    for names in BY_FIELD.values():
        yield from names
    for row in KINDS:
        yield row.attribute
