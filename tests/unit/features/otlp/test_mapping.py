"""What spans of the four dialects become."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from mneme_server.features.events.model import NewEvent
from mneme_server.features.otlp.conversation import ToolCall
from mneme_server.features.otlp.mapping import SILENT, mapped
from mneme_server.features.otlp.messages import spans_of
from mneme_server.features.otlp.model import Received, SpanRecord, TelemetryKind, TelemetrySpan
from mneme_server.features.otlp.spans import Family, name_of
from mneme_server.features.otlp.vocabulary import KINDS, PREFIXES, SpanField, all_names
from support.telemetry import failed, request, span

TRACE = f"{1:032x}"
ASK = "Where is my order 4711?"
SAY = "It left the warehouse this morning."
CALL = {"id": "call_1", "name": "find_order", "arguments": {"order": 4711}}


def received(*spans: Any) -> list[Received]:
    return [
        Received(
            f"{one.trace_id}:{one.span_id}", one, name_of(one.attributes, SpanField.SESSION),
            name_of(one.attributes, SpanField.USER), 0,
        )
        for one in spans_of(request(spans))
    ]  # fmt: skip


def events_of(*spans: Any, known: Sequence[SpanRecord] = ()) -> list[NewEvent]:
    return mapped(received(*spans), (), known).events


def said(events: Sequence[NewEvent]) -> list[tuple[str, str]]:
    """Types, with what is said or called."""
    return [(e.event_type, e.text or e.name or e.model) for e in events]


def gen_ai(told: Any, answer: Any, **more: Any) -> Mapping[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.input.messages": told,
        "gen_ai.output.messages": answer,
    } | more


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


DIALECTS: dict[str, Mapping[str, Any]] = {
    "gen_ai": gen_ai([text("user", ASK)], [text("assistant", SAY)]),
    "gen_ai, older": {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.prompt_tokens": 12,
        "gen_ai.usage.completion_tokens": 7,
        "gen_ai.prompt": [{"role": "user", "content": ASK}],
        "gen_ai.completion": [{"role": "assistant", "content": SAY}],
    },
    "traceloop": {
        "llm.request.type": "chat",
        "gen_ai.system": "openai",
        "gen_ai.response.model": "gpt-x",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": ASK,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": SAY,
    },
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.provider": "openai",
        "llm.model_name": "gpt-x",
        "llm.token_count.prompt": 12,
        "llm.token_count.completion": 7,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": ASK,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": SAY,
    },
    "langsmith": {
        "langsmith.span.kind": "llm",
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.prompt": {
            "messages": [[{"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": ASK}}]]
        },
        "gen_ai.completion": {
            "generations": [
                [{"message": {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": SAY}}}]
            ]
        },
    },
    "vercel": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.provider": "openai",
        "ai.model.id": "gpt-x",
        "ai.usage.promptTokens": 12,
        "ai.usage.completionTokens": 7,
        "ai.prompt.messages": [{"role": "user", "content": [{"type": "text", "text": ASK}]}],
        "ai.response.text": SAY,
    },
}


@pytest.mark.parametrize("order", [2**53 + 1, -(2**53) - 1, 2**63 - 1, 10**30])
@pytest.mark.parametrize("as_text", [False, True], ids=["structured", "JSON text"])
def test_an_integer_in_arguments_that_a_double_would_round_is_kept_as_text(
    order: int, as_text: bool
) -> None:
    given: Any = {"order": order, "lines": [{"id": order}], "exact": 2**53}
    kept = {"order": str(order), "lines": [{"id": str(order)}], "exact": 2**53}
    if not as_text and not -(2**63) <= order < 2**63:
        pytest.skip("OpenTelemetry's own integers have 64 bits")
    arguments = json.dumps(given) if as_text else given
    calls = [
        gen_ai([text("user", ASK)], [{"role": "assistant", "parts": [
            {"type": "tool_call", "id": "c", "name": "find_order", "arguments": arguments}]}]),
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order",
         "gen_ai.tool.call.arguments": arguments},
    ]  # fmt: skip
    for number, attributes in enumerate(calls, 1):
        found = events_of(span(number, attributes))
        (call,) = [one for one in found if one.event_type == "tool_call"]
        assert call.payload["arguments"] == kept


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_models_call_becomes_its_messages_and_an_llm_call(dialect: str) -> None:
    question, call, answer = events_of(span(1, DIALECTS[dialect]))
    assert (question.event_type, question.text, question.payload) == (
        "message", ASK, {"role": "user"},
    )  # fmt: skip
    assert (answer.event_type, answer.text, answer.payload) == (
        "message", SAY, {"role": "assistant"},
    )  # fmt: skip
    assert (call.event_type, call.model, call.input_tokens, call.output_tokens) == (
        "llm_call", "gpt-x", 12, 7,
    )  # fmt: skip
    assert call.payload["provider"] == "openai"
    assert call.duration_us == 500_000
    assert {e.session_id for e in (question, call, answer)} == {TRACE}
    assert {e.agent_id for e in (question, call, answer)} == {"shop-agent"}
    assert answer.timestamp_us == question.timestamp_us + 500_000


TOOLS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "gen_ai": (
        gen_ai(
            [text("user", ASK)],
            [{"role": "assistant", "parts": [{"type": "tool_call", **CALL}]}],
        ),
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find_order",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": {"order": 4711},
            "gen_ai.tool.call.result": {"state": "sent"},
        },
    ),
    "openinference, whose tool does not say which call it is": (
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-x",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": ASK,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call_1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "find_order",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": (
                '{"order": 4711}'
            ),
        },
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "find_order",
            "input.value": '{"order": 4711}',
            "output.value": '{"state": "sent"}',
        },
    ),
    "vercel": (
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.model.id": "gpt-x",
            "ai.prompt.messages": [{"role": "user", "content": ASK}],
            "ai.response.toolCalls": [
                {"toolCallId": "call_1", "toolName": "find_order", "input": {"order": 4711}}
            ],
        },
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "find_order",
            "ai.toolCall.id": "call_1",
            "ai.toolCall.args": {"order": 4711},
            "ai.toolCall.result": {"state": "sent"},
        },
    ),
}


@pytest.mark.parametrize("dialect", TOOLS)
def test_a_call_that_a_model_asks_for_and_a_tools_span_are_one_call(dialect: str) -> None:
    model, tool = TOOLS[dialect]
    events = events_of(span(1, model), span(2, tool))
    assert [e.event_type for e in events] == ["message", "llm_call", "tool_call", "tool_response"]
    call, answer = events[2:]
    assert (call.name, call.call_id, call.payload) == (
        "find_order", "call_1", {"arguments": {"order": 4711}},
    )  # fmt: skip
    assert (answer.name, answer.call_id, answer.payload) == (
        "find_order", "call_1", {"result": {"state": "sent"}},
    )  # fmt: skip
    assert answer.duration_us == 500_000


def test_a_call_told_in_two_places_is_one_and_no_call_is_compared_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared, equal = 0, ToolCall.__eq__

    def counted(call: ToolCall, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(call, other)

    monkeypatch.setattr(ToolCall, "__eq__", counted)
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "find", "input": {}} for n in range(2_000)]
    answer = {"role": "assistant", "content": calls, "tool_calls": calls}
    events = events_of(span(1, gen_ai([text("user", ASK)], [answer])))
    asked = [e.call_id for e in events if e.event_type == "tool_call"]
    assert asked == [call["id"] for call in calls]
    assert compared <= len(calls)


def test_each_message_of_a_conversation_is_recorded_once() -> None:
    told = [text("user", ASK)]
    asks = {"role": "assistant", "parts": [{"type": "tool_call", **CALL}]}
    answers = {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "call_1", "response": "sent"}],
    }
    more = [*told, asks, answers, text("assistant", SAY), text("user", "Thanks!")]
    same = {"gen_ai.conversation.id": "c-1"}
    events = events_of(
        span(1, gen_ai(told, [asks], **same)),
        span(2, gen_ai([*told, asks, answers], [text("assistant", SAY)], **same)),
        span(3, gen_ai(more, [text("assistant", "You are welcome.")], **same)),
    )
    assert said(events) == [
        ("message", ASK), ("llm_call", "gpt-x"), ("tool_call", "find_order"),
        ("tool_response", "find_order"), ("llm_call", "gpt-x"), ("message", SAY),
        ("message", "Thanks!"), ("llm_call", "gpt-x"), ("message", "You are welcome."),
    ]  # fmt: skip
    assert {e.session_id for e in events} == {"c-1"}


def test_a_later_export_makes_the_same_ids_for_the_history() -> None:
    same = {"gen_ai.conversation.id": "c-1"}
    first = events_of(span(1, gen_ai([text("user", ASK)], [text("assistant", SAY)], **same)))
    history = [text("user", ASK), text("assistant", SAY), text("user", "Thanks!")]
    then = events_of(span(9, gen_ai(history, [], **same), trace=2))
    ids = {e.id for e in first}
    assert [e.text for e in then if e.id not in ids and e.event_type == "message"] == ["Thanks!"]


def test_details_of_calls_outside_of_any_span_are_each_told() -> None:
    def details(at: int, told: str, answer: str) -> Received:
        attributes = gen_ai([text("user", told)], [text("assistant", answer)])
        name = "gen_ai.client.inference.operation.details"
        log = TelemetrySpan("", "", "", name, at, at, dict(attributes), is_log=True)
        return Received(f"log:{at}", log, "c", "", 0)

    found = mapped([details(1, "A", "B"), details(2, "C", "D")], (), ()).events
    assert [event.text for event in found if event.event_type == "message"] == list("ABCD")


def log(at: int, told: str, session: str, user: str = "") -> Received:
    """A log record of a message, outside of any span."""
    attributes = {"gen_ai.conversation.id": session, "user.id": user}
    name, body = "gen_ai.user.message", {"content": told}
    one = TelemetrySpan(TRACE, "", "", name, at, at, attributes, is_log=True, body=body)
    return Received(f"log:{at}", one, session, user, 0)


def test_log_records_without_a_span_are_of_the_conversations_that_they_name() -> None:
    found = mapped([log(1, "A", "a", "ann"), log(2, "B", "b", "bob"), log(3, "C", "a")], (), ())
    assert {(e.text, e.session_id, e.metadata["user_id"]) for e in found.events} == {
        ("A", "a", "ann"), ("B", "b", "bob"), ("C", "a", "ann"),
    }  # fmt: skip


def test_a_log_record_of_no_conversation_is_of_its_traces() -> None:
    found = mapped([log(1, "A", ""), log(2, "B", "b")], (), ())
    assert [(event.text, event.session_id) for event in found.events] == [("A", "b"), ("B", "b")]


@pytest.mark.parametrize("said", [True, "12", -1, float("nan")])
def test_what_is_no_number_counts_and_costs_nothing(said: Any) -> None:
    more = {"gen_ai.usage.cost": said, "gen_ai.usage.input_tokens": said}
    call = events_of(span(1, gen_ai([text("user", ASK)], [], **more)))[1]
    assert (call.cost_usd, call.input_tokens) == (0, 0)


def test_agents_are_aggregates_and_are_not_counted_twice() -> None:
    model = gen_ai([text("user", ASK)], [text("assistant", SAY)])
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper",
             "gen_ai.usage.input_tokens": 12}  # fmt: skip
    wrapper = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-x",
               "llm.token_count.prompt": 12}  # fmt: skip
    events = events_of(span(1, agent), span(2, wrapper, parent=1), span(3, model, parent=2))
    assert [e.event_type for e in events] == ["message", "llm_call", "message"]
    assert sum(e.input_tokens for e in events) == 12
    assert {e.agent_id for e in events} == {"helper"}


def test_an_error_is_told_once_by_what_failed_first() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order"}
    why = failed("order not found")
    events = events_of(
        span(1, agent, status=failed("tool failed")), span(2, tool, parent=1, status=why)
    )
    assert [(e.event_type, e.error) for e in events] == [
        ("tool_call", ""), ("tool_error", "order not found"),
    ]  # fmt: skip
    (alone,) = events_of(span(1, agent, status=failed("out of patience"), name="planner"))
    assert (alone.event_type, alone.name, alone.error) == ("error", "planner", "out of patience")


def test_a_models_error_is_its_type_its_exception_or_its_status() -> None:
    given = gen_ai([text("user", ASK)], [])
    thrown = TelemetrySpan.__name__  # Only to have a name at hand that no message has.
    exception = span(2, given, status=failed(""))
    exception.events.add(name="exception", time_unix_nano=1).attributes.add(
        key="exception.message"
    ).value.string_value = thrown
    by_type = span(3, gen_ai([], [], **{"error.type": "RateLimitError"}), trace=3)
    for one, error in ((exception, thrown), (by_type, "RateLimitError")):
        call = next(e for e in events_of(one) if e.event_type == "llm_call")
        assert (call.error, int(call.severity or 0)) == (error, 4)


def test_other_spans_become_nothing_but_give_their_session_and_user() -> None:
    web = {"http.request.header.authorization": "secret", "session.id": "s-7", "user.id": "ann"}
    model = gen_ai([text("user", ASK)], [])
    events = events_of(span(1, web, status=failed("500")), span(2, model, parent=1))
    assert [(e.event_type, e.session_id) for e in events] == [
        ("message", "s-7"), ("llm_call", "s-7"),
    ]  # fmt: skip
    assert {e.metadata["user_id"] for e in events} == {"ann"}
    assert "secret" not in json.dumps([dict(r.span.attributes) for r in received(span(1, web))])


def test_the_session_that_a_request_names_is_kept_for_what_comes_after_it() -> None:
    web = mapped(received(span(1, {"session.id": "s-7"})), (), ())
    assert [(k.span_id, k.session_id) for k in web.known] == [("", "s-7")]
    model = gen_ai([text("user", ASK)], [])
    assert {e.session_id for e in events_of(span(2, model, parent=1), known=web.known)} == {"s-7"}
    assert mapped(received(span(1, {}, trace=5)), (), ()).known == []


def test_a_root_that_comes_late_joins_the_session_that_its_trace_has() -> None:
    known = [SpanRecord(TRACE, "", "", TRACE, TelemetryKind.TRACE)]
    root = gen_ai([text("user", ASK)], [], **{"gen_ai.conversation.id": "late"})
    assert {e.session_id for e in events_of(span(1, root), known=known)} == {TRACE}


def test_a_span_that_became_events_before_becomes_nothing_again() -> None:
    before = SpanRecord(TRACE, f"{1:016x}", "", "elsewhere", TelemetryKind.MODEL)
    assert events_of(span(1, gen_ai([text("user", ASK)], [])), known=[before]) == []


def test_parents_in_a_circle_end_nothing() -> None:
    model = gen_ai([text("user", ASK)], [])
    events = events_of(span(1, model, parent=2), span(2, {}, parent=1), span(3, {}, parent=3))
    assert [e.event_type for e in events] == ["message", "llm_call"]


@pytest.mark.parametrize("kind", ["chat", "invoke_agent", "execute_tool"])
def test_a_chain_of_any_depth_is_walked_once_for_each_of_its_spans(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    depth, steps = 2_000, 0
    parent = Family._parent

    def counted(family: Family, span_id: str) -> str:
        nonlocal steps
        steps += 1
        return parent(family, span_id)

    monkeypatch.setattr(Family, "_parent", counted)
    attributes = {"gen_ai.operation.name": kind}
    spans = [span(n, attributes, parent=n - 1, status=failed("no")) for n in range(2, depth)]
    top = span(1, attributes | {"session.id": "s", "user.id": "ann", "gen_ai.agent.name": "top"})
    events = events_of(*spans, top)
    assert {(e.session_id, e.agent_id, e.metadata["user_id"]) for e in events} == {
        ("s", "top", "ann")
    }
    assert steps < 10 * depth


def test_a_call_without_texts_is_told_at_once_and_its_silence_once_no_texts_came() -> None:
    silent = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    first = mapped(received(*(span(n, silent) for n in (1, 2))), (), ())
    assert [e.event_type for e in first.events] == ["llm_call", "llm_call"]
    assert not any("texts" in e.payload for e in first.events)
    again = mapped(received(span(1, silent)), (), first.known)
    assert (again.events, again.later) == ([], [])
    assert all(row.patient for row in first.later)
    then = mapped(first.later, (), first.known)
    assert [(e.event_type, e.text, e.searchable) for e in then.events] == [
        ("custom", SILENT, False)
    ]
    assert then.later == []


def test_what_cannot_be_stored_is_made_fit() -> None:
    odd = [{"role": "user", "content": "half \ud83d and \x00 none"}]
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.arguments": '{"n": 1' + "0" * 400 + ', "x": NaN}',
        "gen_ai.tool.call.id": "a\nb" * 200,
    }
    events = events_of(span(1, gen_ai(odd, [])), span(2, tool))
    assert events[0].text == "half ? and  none"
    assert events[2].payload["arguments"] == {"n": "1" + "0" * 400, "x": "NaN"}
    assert len(events[2].call_id) == 200
    assert events[2].call_id.isprintable()


def test_the_table_names_only_attributes_that_are_kept() -> None:
    assert [name for name in all_names() if not name.startswith(PREFIXES)] == []
    assert {row.attribute for row in KINDS} <= set(all_names())
