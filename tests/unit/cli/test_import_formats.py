"""What single formats say in their own ways."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from mneme import to_dict
from mneme.importing.run import Importer
from unit.cli.kept import Kept


def read(*records: Any, into: Kept | None = None, form: str = "") -> Kept:
    kept = into or Kept()
    importer = Importer(kept)
    importer.add_stream(io.BytesIO("\n".join(map(json.dumps, records)).encode()), "-")
    assert not importer.totals.broken
    assert not form or set(importer.totals.files[0].formats) == {form}
    return kept


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def used(call_id: str, **given: Any) -> dict[str, Any]:
    use = {"type": "tool_use", "id": call_id, "name": "Bash", "input": given}
    return {"role": "assistant", "content": [use]}


def answered(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def test_a_log_of_requests_that_each_repeat_the_conversation_is_one_session() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4}
    answer = {"id": "msg_1", "type": "message", "usage": usage, **used("t1", command="ls")}
    first = [user({"type": "text", "text": "go"})]
    second = [*first, used("t1", command="ls"), user(answered("t1", "files"))]
    log = [{"messages": first, "response": answer}, {"messages": second}]
    kept = read(*log, form="anthropic")
    assert len(kept.texts) == 1
    assert [len(kept.of(kind)) for kind in ("message", "tool_call", "tool_response")] == [1, 1, 1]
    assert [event.output_tokens for event in kept.of("llm_response")] == [4]


def test_a_server_s_own_tools_and_their_errors_are_tools() -> None:
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    failed = {"type": "web_search_tool_result", "tool_use_id": "s1"}
    failed |= {"content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}
    kept = read([user("go"), {"role": "assistant", "content": [use, failed]}], form="anthropic")
    (error,) = kept.of("tool_error")
    assert (error.name, error.call_id) == ("web_search", "s1")
    assert "unavailable" in error.error


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_thoughts_are_kept_with_their_signature(kind: str) -> None:
    block = {"type": kind, "thinking": "why", "signature": "s"}
    kept = read([user("go"), {"role": "assistant", "content": [block]}, used("t")])
    (thought,) = [event for event in kept.events if event.name == "thinking"]
    assert (thought.text, to_dict(thought.payload)) == ("why", {"signature": "s"})


FACT = {
    "id": "m1",
    "memory": "Prefers aisle seats",
    "hash": "h",
    "user_id": "mia",
    "created_at": "2026-01-02T03:04:05Z",
}


def test_a_fact_of_mem0_keeps_its_words_user_id_and_date() -> None:
    kept = read({"results": [FACT]}, form="mem0")
    (event,) = kept.events
    assert event.text == "Prefers aisle seats"
    assert event.timestamp.ToJsonString() == "2026-01-02T03:04:05Z"
    assert to_dict(event.payload)["memory"]["id"] == "m1"
    assert kept.started[event.session_id]["user_id"] == "mia"


def test_a_fact_that_changed_is_told_once_more_and_a_question_s_score_changes_nothing() -> None:
    kept = read([FACT])
    read({"results": [FACT | {"score": 0.7}]}, into=kept)
    assert len(kept.events) == 1
    read([FACT | {"memory": "Prefers windows", "updated_at": "2026-02-02T00:00:00Z"}], into=kept)
    assert [event.text for event in kept.events] == ["Prefers aisle seats", "Prefers windows"]


def test_responses_that_name_the_one_before_are_one_session_and_each_item_counts_once() -> None:
    call = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    first = {"id": "r1", "object": "response", "output": [call]}
    second = {"id": "r2", "object": "response", "output": [], "previous_response_id": "r1"}
    kept = read(first, {"input": [call, output], "response": second}, form="responses")
    assert list(kept.texts) == ["r1"]
    assert [len(kept.of(kind)) for kind in ("tool_call", "tool_response")] == [1, 1]


def test_what_is_said_twice_to_responses_that_follow_each_other_counts_twice() -> None:
    first = {"input": "go on", "response": {"id": "r1", "object": "response", "output": []}}
    second = {"id": "r2", "object": "response", "output": [], "previous_response_id": "r1"}
    third = second | {"id": "r3", "previous_response_id": "r2"}
    log = [first, {"input": "go on", "response": second}, {"input": "stop", "response": third}]
    kept = read(*log, form="responses")
    assert [event.text for event in kept.of("message")] == ["go on", "go on", "stop"]
    assert len(read(*log, log[-1], into=kept).of("message")) == 3


def test_a_dry_run_takes_what_a_request_repeats_of_an_answer_as_a_server_does() -> None:
    """The answer has a time, and what is repeated of it has none."""
    item = {"type": "message", "id": "m1", "role": "assistant", "content": "hello"}
    response = {"id": "r1", "object": "response", "created_at": 1_772_366_400, "output": [item]}
    first = {"role": "user", "content": "hi"}
    kept = read({"input": [first], "response": response}, {"input": [first, item]})
    assert [event.text for event in kept.of("message")] == ["hi", "hello"]


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"type": "mcp_call", "name": "q", "id": "1", "arguments": "{}", "error": "no"}, "no"),
        (
            {"type": "web_search_call", "id": "1", "action": {"query": "x"}, "status": "failed"},
            "its status is failed",
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "1",
                "output": [{"stdout": "", "outcome": {"type": "exit", "exit_code": 2}}],
            },
            '"exit_code": 2',
        ),
    ],
)
def test_failures_of_the_api_s_own_tools_are_errors(item: Any, error: str) -> None:
    kept = read([{"role": "user", "content": "go"}, item], form="responses")
    assert error in kept.of("tool_error")[0].error


def test_a_trajectory_that_was_not_submitted_ends_in_error_and_an_unfinished_one_goes_on() -> None:
    step = {"action": "ls", "observation": "Error: in the text of a file", "thought": "look"}
    value = {"trajectory": [step], "history": [], "environment": "e"}
    for status, ended in (("exit_cost", ["error"]), ("submitted", ["completed"]), (None, [])):
        kept = read(value | {"info": {"exit_status": status}}, form="swe-agent")
        assert list(kept.ended.values()) == ended
        assert (len(kept.of("tool_response")), kept.of("tool_error")) == (1, [])


def test_calls_stay_with_their_actions_where_a_trajectory_has_steps_that_were_refused() -> None:
    """SWE-agent keeps what it refused to run out of the history, and not what had no action."""

    def said(action: str) -> dict[str, Any]:
        call = {"id": f"call {action}", "function": {"name": "bash", "arguments": "{}"}}
        return {"role": "assistant", "content": "", "action": action, "tool_calls": [call]}

    steps = [{"action": action, "observation": "o"} for action in ("vim", "ls", "", "cat", "make")]
    history = list(map(said, ("ls", "", "cat", "make")))
    kept = read({"trajectory": steps, "history": history, "info": {}}, form="swe-agent")
    found = [event.call_id for event in kept.of("tool_call")]
    assert found == ["step-0", "call ls", "step-2", "call cat", "call make"]


def test_events_of_agentlens_are_told_from_mneme_s_own() -> None:
    event = {"id": "e", "sessionId": "s", "agentId": "a", "eventType": "tool_error"}
    event |= {"payload": {"toolName": "f", "callId": "c", "error": "no"}, "severity": "error"}
    theirs = read(event | {"prevHash": None, "hash": "h"}, form="agentlens")
    (error,) = theirs.of("tool_error")
    assert (error.name, error.call_id, error.error) == ("f", "c", "no")
    ours = {"session_id": "s", "event_type": "message", "text": "x", "hash": "h", "sequence": 1}
    read(ours, form="events")
