"""Results of benchmarks: runs of agents on tasks, with what their graders said."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from mneme import to_dict
from mneme.importing.run import Importer
from unit.cli.kept import Kept
from unit.cli.test_import_formats import read


def _simulation(**fields: Any) -> dict[str, Any]:
    at = "2026-03-01T12:00:0{}.000000".format
    usage = {"prompt_tokens": 900, "completion_tokens": 40}
    call = {"id": "c1", "name": "cancel_order", "arguments": {"order_id": "#7"}}
    by_user = {"id": "u1", "name": "toggle_wifi", "arguments": {}, "requestor": "user"}
    return {
        "id": "7d1c", "task_id": "12", "trial": 1, "seed": 300, "start_time": at(0),
        "end_time": at(9), "duration": 9.0, "termination_reason": "user_stop",
        "agent_cost": 0.02, "user_cost": 0.01,
        "reward_info": {"reward": 1.0, "reward_breakdown": {"DB": 1.0}},
        "messages": [
            {"role": "user", "content": "Cancel order 7.", "timestamp": at(1), "cost": 0.01},
            {
                "role": "assistant", "content": None, "tool_calls": [call], "timestamp": at(2),
                "cost": 0.02, "usage": usage, "raw_data": {"id": "chatcmpl"},
            },
            {"role": "tool", "id": "c1", "content": '{"status": "cancelled"}', "error": False},
            {"role": "user", "content": None, "tool_calls": [by_user]},
            {"role": "tool", "tool_messages": [
                {"role": "tool", "id": "u1", "content": "no network", "error": True,
                 "requestor": "user"},
            ]},
            {"role": "assistant", "content": "Order 7 is cancelled.", "timestamp": at(8)},
        ],
    } | fields  # fmt: skip


def _results(*simulations: dict[str, Any]) -> dict[str, Any]:
    info = {
        "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1"},
        "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1-mini"},
        "environment_info": {"domain_name": "retail"},
    }
    tasks = [{"id": "12", "description": {"purpose": "Cancels one order."}}]
    return {"info": info, "tasks": tasks, "simulations": list(simulations)}


def test_a_run_of_tau2_bench_is_a_session_with_its_reward() -> None:
    kept = read(_results(_simulation(), _simulation(id="8f2e", trial=2)), form="tau2-bench")
    assert list(kept.started) == ["tau2-7d1c", "tau2-8f2e"]
    start = kept.started["tau2-7d1c"]
    assert (start["agent_id"], start["project"]) == ("gpt-4.1", "retail")
    assert start["tags"] == ["task:12", "trial:1"]
    metadata = start["metadata"]
    assert (metadata["reward"], metadata["task"]) == (1.0, "Cancels one order.")
    assert (metadata["task_id"], metadata["termination_reason"]) == ("12", "user_stop")
    assert start["started_at"].second == 0
    assert kept.ended["tau2-7d1c"] == "completed"


def test_all_that_a_run_of_tau2_bench_holds_is_there_once() -> None:
    kept = read(_results(_simulation()), form="tau2-bench")
    counts = {kind: len(kept.of(kind)) for kind in {event.event_type for event in kept.events}}
    assert counts == {
        "message": 2, "tool_call": 2, "tool_response": 1, "tool_error": 1, "llm_response": 1,
    }  # fmt: skip
    (answer,) = kept.of("llm_response")
    assert (answer.input_tokens, answer.output_tokens, answer.cost_usd) == (900, 40, 0.02)
    assert answer.model == "gpt-4.1"
    agents = {(one.name, one.agent_id) for one in kept.of("tool_call")}
    assert agents == {("cancel_order", ""), ("toggle_wifi", "user-simulator")}
    (error,) = kept.of("tool_error")
    assert (error.name, error.call_id, error.error) == ("toggle_wifi", "u1", "no network")
    assert "raw_data" not in str([to_dict(event) for event in kept.events])


def test_a_run_of_tau2_bench_that_its_environment_ended_was_not_graded() -> None:
    run = _simulation(termination_reason="infrastructure_error", reward_info={"reward": 0.0})
    kept = read(_results(run), form="tau2-bench")
    assert "reward" not in kept.started["tau2-7d1c"]["metadata"]
    assert kept.ended["tau2-7d1c"] == "error"


def test_a_run_of_tau2_bench_that_cannot_be_read_does_not_keep_out_the_others() -> None:
    kept = Kept()
    importer = Importer(kept)
    text = json.dumps(_results({"task_id": "12"}, _simulation()))
    importer.add_stream(io.BytesIO(text.encode()), "-")
    assert len(importer.totals.broken) == 1
    assert list(kept.started) == ["tau2-7d1c"]


def _log(*samples: dict[str, Any]) -> dict[str, Any]:
    said = {"task": "gaia", "model": "openai/gpt-4o", "run_id": "r1", "created": "2026-03-01"}
    return {"version": 2, "status": "success", "eval": said, "samples": list(samples)}


def _sample(**fields: Any) -> dict[str, Any]:
    call = {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}
    return {
        "id": "q1", "epoch": 1, "uuid": "u1", "input": "How many files?", "target": "3",
        "messages": [
            {"role": "user", "content": "How many files?", "source": "input"},
            {"role": "assistant", "content": [
                {"type": "reasoning", "reasoning": "I must look."},
                {"type": "text", "text": "I look."},
            ], "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "",
             "error": {"type": "timeout", "message": "timed out"}},
            {"role": "assistant", "content": "3", "model": "openai/gpt-4o"},
        ],
        "scores": {"match": {"value": "C", "answer": "3", "explanation": "3 = 3"}},
        "model_usage": {"openai/gpt-4o": {"input_tokens": 900, "output_tokens": 40}},
        "started_at": "2026-03-01T12:00:00+00:00", "completed_at": "2026-03-01T12:01:00+00:00",
    } | fields  # fmt: skip


def test_a_sample_of_inspect_is_a_session_with_all_that_it_holds_once() -> None:
    kept = read(_log(_sample()), form="inspect-ai")
    (session_id,) = kept.started
    start = kept.started[session_id]
    assert (start["agent_id"], start["project"]) == ("openai/gpt-4o", "gaia")
    assert start["metadata"]["reward"] == 1
    assert start["metadata"]["task_id"] == "q1"
    counts = {kind: len(kept.of(kind)) for kind in {event.event_type for event in kept.events}}
    assert counts == {
        "message": 3, "custom": 1, "tool_call": 1, "tool_error": 1, "llm_response": 1,
    }  # fmt: skip
    (error,) = kept.of("tool_error")
    assert (error.name, error.call_id, error.error) == ("bash", "c1", "timed out")
    (answer,) = kept.of("llm_response")
    assert (answer.model, answer.input_tokens, answer.output_tokens) == ("openai/gpt-4o", 900, 40)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("C", {"reward": 1}), ("I", {"reward": 0}), ("P", {"outcome": "partial"}), ("N", {}),
        (0.25, {"reward": 0.25}), (True, {"reward": 1}), (7, {}), ({"a": 1}, {}), ("B", {}),
    ],
)  # fmt: skip
def test_a_score_of_inspect_is_a_verdict_where_it_means_one(
    value: Any, told: dict[str, Any]
) -> None:
    kept = read(_log(_sample(scores={"it": {"value": value}})), form="inspect-ai")
    (start,) = kept.started.values()
    said = {
        key: start["metadata"][key] for key in ("reward", "outcome") if key in start["metadata"]
    }
    assert said == told


def test_epochs_of_a_sample_of_inspect_are_sessions_of_one_task() -> None:
    twice = [_sample(uuid="u1"), _sample(uuid="u2", epoch=2, error={"message": "out of memory"})]
    kept = read(_log(*twice), form="inspect-ai")
    assert len(kept.started) == 2
    assert {tuple(start["tags"]) for start in kept.started.values()} == {
        ("task:q1", "trial:1"), ("task:q1", "trial:2"),
    }  # fmt: skip
    assert sorted(kept.ended.values()) == ["completed", "error"]
    assert [event.error for event in kept.of("error")] == ["out of memory"]


def _trial(**fields: Any) -> dict[str, Any]:
    return {
        "trial_name": "fix-git.1-of-1.run", "task_id": "fix-git", "is_resolved": True,
        "instruction": "Find my lost commit.", "failure_mode": "none",
        "parser_results": {"test_commit": "passed", "test_clean": "failed"},
        "total_input_tokens": 1200, "total_output_tokens": 80,
        "trial_started_at": "2026-03-01T12:00:00+00:00",
        "trial_ended_at": "2026-03-01T12:05:00+00:00",
    } | fields  # fmt: skip


def test_a_trial_of_terminal_bench_is_a_session_with_its_tests() -> None:
    results = {"id": "run-1", "accuracy": 0.5, "results": [_trial(), _trial(
        trial_name="other", is_resolved=None, failure_mode="agent_timeout",
    )]}  # fmt: skip
    kept = read(results, form="terminal-bench")
    first, second = kept.started.values()
    assert (first["metadata"]["success"], "success" in second["metadata"]) == (True, False)
    assert first["tags"] == ["task:fix-git"]
    assert list(kept.ended.values()) == ["completed", "error"]
    texts = kept.texts[first["session_id"]]
    assert texts[0] == "Find my lost commit."
    assert [one.name for one in kept.of("tool_error")] == ["test_clean"] * 2
    assert [one.error for one in kept.of("error")] == ["agent_timeout"]
    assert [one.input_tokens for one in kept.of("llm_response")] == [1200, 1200]


def _trajectory(*messages: dict[str, Any], status: str = "Submitted") -> dict[str, Any]:
    task = {"role": "user", "content": "Fix the parser.", "extra": {"timestamp": 1_772_366_400.0}}
    return {
        "trajectory_format": "mini-swe-agent-1.1", "instance_id": "shop__shop-7",
        "info": {"mini_version": "2.0", "exit_status": status, "submission": "diff --git"},
        "messages": [task, *messages],
    }  # fmt: skip


def test_what_mini_swe_agent_could_not_run_is_an_error_and_no_word_of_the_user() -> None:
    refused = {
        "role": "user", "content": "Expected exactly 1 action, found 0.",
        "extra": {"interrupt_type": "FormatError", "timestamp": 1_772_366_410.5},
    }  # fmt: skip
    old = {
        "role": "user",
        "content": "Please always provide EXACTLY ONE action in triple backticks.",
    }
    kept = read(_trajectory(refused, old), form="mini-swe-agent")
    assert [event.text for event in kept.of("message")] == ["Fix the parser."]
    errors = kept.of("error")
    assert [error.name for error in errors] == ["format", "format"]
    assert errors[0].error == "Expected exactly 1 action, found 0."
    assert errors[0].timestamp.ToMilliseconds() == 1_772_366_410_500


@pytest.mark.parametrize(
    ("status", "ended", "errors"),
    [("Submitted", "completed", []), ("LimitsExceeded", "error", ["LimitsExceeded\nno money"])],
)
def test_how_mini_swe_agent_exits_is_an_error_unless_it_submitted(
    status: str, ended: str, errors: list[str]
) -> None:
    content = "" if status == "Submitted" else "no money"
    last = {"role": "exit", "content": content, "extra": {"exit_status": status}}
    kept = read(_trajectory(last, status=status), form="mini-swe-agent")
    assert [error.error for error in kept.of("error")] == errors
    assert list(kept.ended.values()) == [ended]
    (start,) = kept.started.values()
    assert not {"reward", "success", "outcome"} & set(start["metadata"])


def _openhands() -> list[dict[str, Any]]:
    at = "2026-03-01T12:00:0{}.5".format
    usage = {"prompt_tokens": 900, "completion_tokens": 4}
    answer = {"id": "r1", "model": "claude", "usage": usage}
    told = {"function_name": "execute_bash", "tool_call_id": "t1", "model_response": answer}
    return [
        {"id": 0, "timestamp": at(0), "source": "user", "action": "message",
         "args": {"content": "Fix the parser."}},
        {"id": 1, "timestamp": at(1), "source": "environment", "content": "",
         "observation": "agent_state_changed", "extras": {"agent_state": "running"}},
        {"id": 2, "timestamp": at(2), "source": "agent", "action": "run",
         "args": {"command": "pytest", "thought": "I run the tests."}, "tool_call_metadata": told},
        {"id": 3, "timestamp": at(3), "source": "agent", "observation": "run", "cause": 2,
         "content": "1 failed", "extras": {"metadata": {"exit_code": 1}}},
        {"id": 4, "timestamp": at(4), "source": "agent", "action": "finish",
         "args": {"final_thought": "The parser is fixed."}},
    ]  # fmt: skip


def _all_of_openhands_once(kept: Kept) -> None:
    counts = {kind: len(kept.of(kind)) for kind in {event.event_type for event in kept.events}}
    assert counts == {"message": 3, "tool_call": 1, "tool_error": 1, "llm_response": 1}
    (call,), (error,) = kept.of("tool_call"), kept.of("tool_error")
    assert (call.name, call.call_id, error.call_id) == ("execute_bash", "t1", "t1")
    assert error.error == "1 failed"
    assert [event.text for event in kept.of("message")] == [
        "Fix the parser.", "I run the tests.", "The parser is fixed.",
    ]  # fmt: skip


def test_a_trajectory_of_openhands_is_one_session() -> None:
    kept = Kept()
    importer = Importer(kept)
    importer.add_stream(io.BytesIO(json.dumps(_openhands()).encode()), "-")
    assert not importer.totals.broken
    _all_of_openhands_once(kept)
    (start,) = kept.started.values()
    assert start["started_at"].microsecond == 500_000
    assert list(kept.ended.values()) == ["completed"]


def test_a_line_of_an_evaluation_of_openhands_is_one_session_with_its_verdict() -> None:
    line = {
        "instance_id": "shop__shop-7", "history": _openhands(),
        "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "claude"}},
        "test_result": {"git_patch": "diff", "report": {"resolved": False}},
    }  # fmt: skip
    other = line | {"instance_id": "shop__shop-8", "test_result": {}}
    kept = read(line, other, form="openhands")
    first, second = kept.started.values()
    assert (first["metadata"]["success"], "success" in second["metadata"]) == (False, False)
    assert first["tags"] == ["task:shop__shop-7"]
    _all_of_openhands_once(read(line))


def test_events_of_the_sdk_of_openhands_say_their_kind() -> None:
    text = [{"type": "text", "text": "Fix the parser."}]
    events = [
        {"kind": "MessageEvent", "source": "user",
         "llm_message": {"role": "user", "content": text}},
        {"kind": "ActionEvent", "source": "agent", "tool_name": "terminal", "tool_call_id": "t1",
         "thought": [], "action": {"kind": "TerminalAction", "command": "pytest"}},
        {"kind": "ObservationEvent", "source": "environment", "tool_name": "terminal",
         "tool_call_id": "t1", "observation": {"content": [{"type": "text", "text": "ok"}]}},
        {"kind": "AgentErrorEvent", "source": "agent", "tool_name": "terminal",
         "tool_call_id": "t2", "error": "no such tool"},
    ]  # fmt: skip
    kept = read(*events, form="openhands")
    kinds = [event.event_type for event in kept.events]
    assert kinds == ["message", "tool_call", "tool_response", "tool_error"]
    assert list(kept.ended.values()) == ["error"]


def test_an_event_without_a_time_has_that_of_its_neighbour_and_none_is_made_up() -> None:
    kept = read(_results(_simulation()), form="tau2-bench")
    seconds = [event.timestamp.ToDatetime().second for event in kept.events]
    assert seconds == sorted(seconds)
    assert seconds[2:4] == [2, 2]  # The answers of tools have no time of their own.
    timeless = read([{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}])
    assert not any(event.HasField("timestamp") for event in timeless.events)
