from __future__ import annotations

from typing import Any

import pytest
from mneme.messages import (
    BrokenChain,
    Event,
    EventReceipt,
    ListEventsResponse,
    RecordEventsResponse,
    Severity,
    VerifyEventsResponse,
    WatchEventsResponse,
)
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure

EVENT = Event(
    id="e1",
    session_id="s1",
    event_type="tool_error",
    name="pytest",
    error="2 failed",
)


def test_events_are_listed_with_every_filter(served: ScriptedServer) -> None:
    served.on("ListEvents", ListEventsResponse(events=[EVENT]))
    result = mneme(
        *["events", "list", "--session", "s1", "--agent", "a", "--type", "tool_error"],
        *["--type", "MESSAGE", "--min-severity", "warn", "--name", "pytest", "--newest"],
    )
    assert result.lines[0].split() == ["WHEN", "TYPE", "NAME", "SESSION", "ID", "TEXT"]
    assert result.lines[1].split() == ["tool_error", "pytest", "s1", "e1", "2", "failed"]
    request = served.last("ListEvents")
    assert (request.session_id, request.agent_id, request.name) == ("s1", "a", "pytest")
    assert list(request.event_types) == [
        "tool_error",
        "message",
    ]
    assert request.min_severity == Severity.SEVERITY_WARN
    assert request.descending


def test_another_framework_s_type_is_asked_for_as_it_is(served: ScriptedServer) -> None:
    served.on("ListEvents", lambda request, context: ListEventsResponse())
    mneme("events", "list", "--type", "PreToolUse", "--type", "Tool-Call")
    assert list(served.last("ListEvents").event_types) == ["PreToolUse", "tool_call"]


def test_all_events_are_walked_page_by_page(served: ScriptedServer) -> None:
    def page(request: Any, context: Any) -> ListEventsResponse:
        last = request.page_token == "2"
        return ListEventsResponse(events=[EVENT] * 3, next_page_token="" if last else "2")

    served.on("ListEvents", page)
    assert len(mneme("events", "list", "--limit", "0", "--json").lines) == 6
    assert served.last("ListEvents").page_size == 1000


def test_one_event_is_recorded_with_every_field(served: ScriptedServer) -> None:
    served.on("RecordEvents", RecordEventsResponse(receipts=[EventReceipt(id="e9")]))
    result = mneme(
        *["events", "record", "--session", "s", "--type", "llm_response", "--text", "t"],
        *["--name", "n", "--error", "e", "--agent", "a", "--severity", "critical"],
        *["--payload", '{"p": [1]}', "--metadata", '{"m": true}', "--id", "e9"],
        *["--at", "2026-03-01T12:00:00+01:00", "--call-id", "c", "--model", "gpt"],
        *["--input-tokens", "5", "--output-tokens", "6", "--cost", "0.5", "--duration", "1.5"],
        "--wait",
    )
    assert result.out == "e9\n"
    request = served.last("RecordEvents")
    event = request.events[0]
    assert request.wait_indexed
    assert (event.id, event.session_id, event.agent_id) == ("e9", "s", "a")
    assert event.event_type == "llm_response"
    assert event.severity == Severity.SEVERITY_CRITICAL
    assert event.timestamp.ToJsonString() == "2026-03-01T11:00:00Z"
    assert event.payload.fields["p"].list_value.values[0].number_value == 1
    assert (event.input_tokens, event.output_tokens, event.cost_usd) == (5, 6, 0.5)
    assert event.duration.ToMilliseconds() == 1500


def test_an_intact_chain_is_reported_with_what_was_walked(served: ScriptedServer) -> None:
    served.on(
        "VerifyEvents",
        VerifyEventsResponse(valid=True, sessions_checked=1, events_checked=9, head_hash="ab"),
    )
    result = mneme("events", "verify", "s1")
    assert (result.code, result.out) == (0, "intact: 9 events in 1 session\nhead ab\n")


def test_a_broken_chain_is_named_and_fails(served: ScriptedServer) -> None:
    broken = BrokenChain(session_id="s1", event_id="e3", sequence=3, reason="content was changed")
    served.on("VerifyEvents", VerifyEventsResponse(broken_chains=[broken], broken_count=1))
    result = mneme("events", "verify")
    assert result.code == 1
    assert result.lines[-1].split(maxsplit=3) == ["s1", "e3", "3", "content was changed"]
    assert mneme("events", "verify", "--json").code == 1


def watched(number: int) -> WatchEventsResponse:
    return WatchEventsResponse(event=Event(id=f"e{number}", session_id="s"), cursor=str(number))


def test_watching_shows_each_event_and_ends_after_the_limit(served: ScriptedServer) -> None:
    def watch(request: Any, context: Any) -> Any:
        yield WatchEventsResponse(cursor="0")
        for number in range(1, 100):
            yield watched(number)

    served.on("WatchEvents", watch)
    documents = mneme("events", "watch", "--limit", "3", "--json").documents
    assert [d["event"]["id"] for d in documents] == ["e1", "e2", "e3"]
    assert documents[-1]["cursor"] == "3"
    assert "s  " in mneme("events", "watch", "--limit", "1").out


def test_watching_goes_on_where_it_was_when_the_server_comes_back(
    served: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(request: Any, context: Any) -> Any:
        if request.after_cursor == "":
            yield watched(1)
            failure(context, "UNAVAILABLE", "stopping", reason="STOPPING", retry_after=0.01)
        yield watched(int(request.after_cursor) + 1)

    served.on("WatchEvents", watch)
    result = mneme("events", "watch", "--limit", "2", "--json")
    assert [d["event"]["id"] for d in result.documents] == ["e1", "e2"]
    assert "stopping; waiting for it to come back" in result.err


def test_watching_without_a_server_ends_at_once(served: ScriptedServer) -> None:
    served.stop()
    assert mneme("events", "watch").code == 3
