"""One session or more in each format, made by a seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.transcripts.benchmarks import inspect_ai, openhands, tau2_bench, terminal_bench
from support.transcripts.coding import claude_code, codex
from support.transcripts.story import Call, Story


def anthropic(folder: Path, seed: int) -> list[Path]:
    """A request with its messages; by the seed with the answer, or the messages alone."""
    story = Story(seed)
    messages: list[dict[str, Any]] = []
    for turn in story.turns():
        messages.append({"role": "user", "content": turn.prompt})
        for thought, text, calls in turn.answers:
            blocks: list[Any] = [
                {"type": "thinking", "thinking": thought, "signature": "s"},
                {"type": "text", "text": text},
                *(
                    {"type": "tool_use", "id": c.id, "name": c.tool, "input": c.arguments}
                    for c in calls
                ),
            ]
            messages.append({"role": "assistant", "content": blocks})
            if calls:
                messages.append({"role": "user", "content": [_result(story, c) for c in calls]})
    messages.append({"role": "user", "content": [{"type": "aura", "hue": 7}]})
    messages.append({"role": "wizard", "content": "abra"})
    record: Any = {"model": "claude-opus-4-5", "system": "Be brief.", "messages": messages}
    if seed % 3 == 0:
        record = messages
    elif seed % 3 == 1:
        answer = {"id": f"msg_{seed}", "type": "message", "role": "assistant", "model": "m"}
        call = story.call()
        use = {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
        answer |= {"content": [use], "usage": {"input_tokens": 5, "output_tokens": 7}}
        record["response"] = answer
    return [_json(folder / f"{seed}.json", record)]


def _result(story: Story, call: Call) -> dict[str, Any]:
    content: Any = call.answer
    if story.some(1):
        content = [{"type": "text", "text": call.answer}]
    failed = {"is_error": True} if call.failed else {}
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, **failed}


def responses(folder: Path, seed: int) -> list[Path]:
    """Responses, each of which names the one before; by the seed the items alone."""
    story = Story(seed)
    made: list[Any] = []
    every: list[Any] = []
    given: list[Any] = []
    previous = None
    for turn in story.turns():
        given.append({"role": "user", "content": turn.prompt})
        for thought, text, calls in turn.answers:
            output: list[Any] = [
                {"type": "reasoning", "id": f"rs_{story.hex(9)}", "summary": [_part(thought)]},
                {
                    "type": "message",
                    "id": f"msg_{story.hex(9)}",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": text, "annotations": []}],
                },
                *(_item_call(story, c) for c in calls),
            ]
            response = {
                "id": f"resp_{story.hex(9)}",
                "object": "response",
                "created_at": int(story.time.timestamp()) + len(made),
                "model": "gpt-5.2",
                "previous_response_id": previous,
                "output": output,
                "usage": {"input_tokens": 10 + story.some(90), "output_tokens": story.some(40)},
            }
            made.append({"input": given, "response": response})
            every += [*given, *output]
            previous = response["id"]
            given = [_item_answer(c) for c in calls if c.tool != TOOLED]
    every += given
    every.append({"type": "aura", "id": "a1", "hue": 7})
    if seed % 3 == 0:
        return [_json(folder / f"{seed}.json", every)]
    made.append({"input": [*given, every[-1]], "response": made[-1]["response"]})
    file = folder / f"{seed}.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in made))
    return [file]


TOOLED = "mcp__db__query"


def _item_call(story: Story, call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments)
    if call.tool == TOOLED:  # The API's own server calls it, and says at once what came of it.
        outcome = {"error": call.answer} if call.failed else {"output": call.answer}
        made = {"type": "mcp_call", "id": call.id, "server_label": "db", "name": "query"}
        return made | {"arguments": arguments, **outcome}
    name = {"name": call.tool, "id": f"fc_{story.hex(9)}", "call_id": call.id}
    return {"type": "function_call", **name, "arguments": arguments}


def _item_answer(call: Call) -> dict[str, Any]:
    output = f"Error: {call.answer}" if call.failed else call.answer
    return {"type": "function_call_output", "call_id": call.id, "output": output}


def _part(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def swe_agent(folder: Path, seed: int) -> list[Path]:
    """A trajectory; by the seed with functions called, and finished or not."""
    story = Story(seed)
    steps, history = (
        [],
        [
            {"role": "system", "content": "You fix bugs.", "agent": "main"},
            {"role": "user", "content": story.words(20), "agent": "main"},
        ],
    )
    for turn in story.turns():
        for thought, _, calls in turn.answers:
            for call in calls or [story.call()]:
                action = f"str_replace_editor view {call.arguments['path']}"
                said = {"role": "assistant", "content": thought, "action": action, "agent": "main"}
                if seed % 2:
                    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
                    said["tool_calls"] = [{"id": call.id, "function": function}]
                observed = {"role": "user", "content": f"OBSERVATION:\n{call.answer}"}
                steps.append(
                    {
                        "action": action,
                        "observation": call.answer,
                        "response": thought,
                        "thought": thought,
                        "execution_time": 0.5,
                        "state": {"working_dir": "/repo"},
                        "query": [*history],
                        "extra_info": {},
                    }
                )
                history += [said, observed]
    stats = {"instance_cost": 0.5, "tokens_sent": 900, "tokens_received": 90, "api_calls": 9}
    info: dict[str, Any] = {"model_stats": stats}
    if seed % 5:
        info |= {"exit_status": "submitted" if seed % 3 else "exit_cost", "submission": "diff"}
    value = {"trajectory": steps, "history": history, "info": info, "environment": f"env-{seed}"}
    return [_json(folder / f"repo__{seed}.traj", value)]


def mini_swe_agent(folder: Path, seed: int) -> list[Path]:
    """A trajectory; by the seed of version 2, with calls, or 1, with actions in the text."""
    story = Story(seed)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You use a shell."},
        {"role": "user", "content": story.words(20)},
    ]
    old = seed % 2 == 0
    for turn in story.turns():
        for thought, _, calls in turn.answers:
            for call in calls or [story.call()]:
                messages += _old(thought, call) if old else _new(story, thought, call)
    info = {"mini_version": "1.9" if old else "2.3", "exit_status": "Submitted", "submission": "d"}
    value = {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1"}
    return [_json(folder / f"repo__{seed}.traj.json", value)]


def _old(thought: str, call: Call) -> list[dict[str, Any]]:
    command = f"cat {call.arguments['path']}"
    content = f"THOUGHT: {thought}\n\n```bash\n{command}\n```"
    code = 2 * call.failed
    said = f"<returncode>{code}</returncode>\n<output>\n{call.answer}\n</output>"
    return [{"role": "assistant", "content": content}, {"role": "user", "content": said}]


def _new(story: Story, thought: str, call: Call) -> list[dict[str, Any]]:
    arguments = {"command": f"cat {call.arguments['path']}"}
    function = {"name": "bash", "arguments": json.dumps(arguments)}
    usage = {"prompt_tokens": 100, "completion_tokens": 1 + story.some(50)}
    code = int(call.failed)
    extra = {"actions": [arguments], "response": {"model": "m", "usage": usage}, "cost": 0.25}
    extra["timestamp"] = story.time.timestamp()
    return [
        {
            "role": "assistant",
            "content": thought,
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
            "extra": extra,
        },
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": f"<returncode>{code}</returncode>\n<output>\n{call.answer}\n</output>",
            "extra": {"returncode": code, "raw_output": call.answer, "exception_info": ""},
        },
    ]


def agentlens(folder: Path, seed: int) -> list[Path]:
    """A session with its events, as the dashboard exports it; by the seed with lessons."""
    story = Story(seed)
    session = f"ses-{story.hex(12)}"
    events: list[dict[str, Any]] = []

    def event(kind: str, payload: Any, severity: str = "info") -> None:
        events.append(
            {
                "id": story.hex(26),
                "timestamp": story.now(),
                "sessionId": session,
                "agentId": "seller",
                "eventType": kind,
                "severity": severity,
                "payload": payload,
                "metadata": {"host": "h1"},
                "prevHash": events[-1]["hash"] if events else None,
                "hash": story.hex(64),
            }
        )

    event("session_started", {"agentName": "Seller", "tags": ["a"]})
    for turn in story.turns():
        for _, text, calls in turn.answers:
            for call in calls:
                joined = {"callId": call.id, "toolName": call.tool}
                event("tool_call", joined | {"arguments": call.arguments})
                if call.failed:
                    failed = joined | {"error": call.answer, "durationMs": 12}
                    event("tool_error", failed, "error")
                else:
                    event("tool_response", joined | {"result": call.answer, "durationMs": 9})
            usage = {"inputTokens": 10, "outputTokens": story.some(40), "totalTokens": 60}
            event("llm_response", {"completion": text, "model": "m", "usage": usage})
    event("telepathy", {"thought": "x"})
    value: dict[str, Any] = {
        "exportedAt": story.now(),
        "agentlensVersion": "0.12.1",
        "session": {
            "id": session,
            "agentId": "seller",
            "agentName": "Seller",
            "startedAt": events[0]["timestamp"],
            "endedAt": events[-1]["timestamp"],
            "status": "completed",
            "eventCount": len(events),
            "toolCallCount": 1,
            "errorCount": 0,
            "totalCostUsd": 0.5,
            "tags": ["a"],
        },
        "chainValid": True,
        "events": events,
    }
    if seed % 2:
        lesson = {"id": f"les-{seed}", "agentId": "seller", "category": "sales", "title": "T"}
        lesson |= {"content": "Ask first.", "context": {}, "importance": "high", "tenantId": "t"}
        value["lessons"] = [lesson | {"createdAt": story.now(), "sourceSessionId": session}]
    return [_json(folder / f"session-{seed}.json", value)]


def mem0(folder: Path, seed: int) -> list[Path]:
    """The facts of one user."""
    story = Story(seed)
    facts = [
        {
            "id": story.uuid(),
            "memory": story.words(8),
            "hash": story.hex(32),
            "metadata": {"category": "travel"} if story.some(1) else None,
            "created_at": story.now(),
            "updated_at": None,
            "user_id": f"user-{seed}",
        }
        for _ in range(3 + story.some(5))
    ]
    value: Any = {"results": facts} if seed % 2 else facts
    return [_json(folder / f"mem0-{seed}.json", value)]


def _json(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value, ensure_ascii=False))
    return file


WRITERS: dict[str, Callable[[Path, int], list[Path]]] = {
    "agentlens": agentlens,
    "anthropic": anthropic,
    "claude-code": claude_code,
    "codex": codex,
    "inspect-ai": inspect_ai,
    "mem0": mem0,
    "mini-swe-agent": mini_swe_agent,
    "openhands": openhands,
    "responses": responses,
    "swe-agent": swe_agent,
    "tau2-bench": tau2_bench,
    "terminal-bench": terminal_bench,
}
