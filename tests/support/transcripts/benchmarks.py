"""Results as benchmarks of agents write them, and trajectories of OpenHands: files that hold
several sessions each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.transcripts.coding import lines
from support.transcripts.story import Call, Story


def tau2_bench(folder: Path, seed: int) -> list[Path]:
    """The runs of a domain; by the seed with calls of the user's, and one that was cut short."""
    story = Story(seed)
    runs = []
    for trial in range(1 + story.some(1)):
        messages: list[dict[str, Any]] = []
        for turn in story.turns():
            messages.append({"role": "user", "content": turn.prompt, "timestamp": story.now()})
            for _, text, calls in turn.answers:
                usage = {"prompt_tokens": 90, "completion_tokens": 1 + story.some(50)}
                said = {"role": "assistant", "content": None if calls else text, "cost": 0.01}
                messages.append(
                    said | {"tool_calls": _plain_calls(calls) or None, "usage": usage,
                            "timestamp": story.now(), "raw_data": {"id": "chatcmpl"}}
                )  # fmt: skip
                messages += _answers(calls)
        if seed % 2:
            own = story.call()
            calls = [{**call, "requestor": "user"} for call in _plain_calls([own])]
            messages.append({"role": "user", "content": None, "tool_calls": calls})
            messages += [{**answer, "requestor": "user"} for answer in _answers([own])]
        end = "infrastructure_error" if seed % 3 == 2 else "user_stop"
        runs.append(
            {
                "id": story.uuid(), "task_id": str(seed), "trial": trial, "seed": 300,
                "start_time": messages[0]["timestamp"], "end_time": story.now(),
                "termination_reason": end, "messages": messages,
                "reward_info": {"reward": float(story.some(1))},
            }
        )  # fmt: skip
    info = {"agent_info": {"llm": "gpt-4.1"}, "environment_info": {"domain_name": "retail"}}
    return [_one(folder / f"retail-{seed}.json", {"info": info, "tasks": [], "simulations": runs})]


def _plain_calls(calls: list[Call]) -> list[dict[str, Any]]:
    return [{"id": call.id, "name": call.tool, "arguments": call.arguments} for call in calls]


def _answers(calls: list[Call]) -> list[dict[str, Any]]:
    """Answers of tools; several of them in one message."""
    made = [
        {"role": "tool", "id": call.id, "content": call.answer, "error": call.failed}
        for call in calls
    ]
    return [{"role": "tool", "tool_messages": made}] if len(made) > 1 else made


def inspect_ai(folder: Path, seed: int) -> list[Path]:
    """A log of some samples; by the seed one of them broke off."""
    story = Story(seed)
    samples = []
    for number in range(1 + story.some(2)):
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
        for turn in story.turns():
            messages.append({"role": "user", "content": turn.prompt, "source": "input"})
            for thought, text, calls in turn.answers:
                parts = [
                    {"type": "reasoning", "reasoning": thought},
                    {"type": "text", "text": text},
                ]
                made = [
                    {"id": c.id, "function": c.tool, "arguments": c.arguments, "type": "function"}
                    for c in calls
                ]
                messages.append({"role": "assistant", "content": parts, "tool_calls": made})
                messages += [_inspected(story, call) for call in calls]
        usage = {"input_tokens": 900, "output_tokens": 1 + story.some(90)}
        sample: dict[str, Any] = {
            "id": f"q{number}", "epoch": 1, "uuid": story.hex(22), "input": "?", "target": "3",
            "messages": messages, "scores": {"match": {"value": "C" if story.some(1) else "I"}},
            "model_usage": {"openai/gpt-4o": usage},
            "started_at": story.now(), "completed_at": story.now(),
        }  # fmt: skip
        samples.append(sample | ({"error": {"message": "killed"}} if seed % 4 == 1 else {}))
    said = {"task": "gaia", "model": "openai/gpt-4o", "run_id": story.hex(22)}
    log = {"version": 2, "status": "success", "eval": said, "samples": samples}
    return [_one(folder / f"gaia-{seed}.json", log)]


def _inspected(story: Story, call: Call) -> dict[str, Any]:
    content: Any = "" if call.failed else call.answer
    if content and story.some(1):
        content = [{"type": "text", "text": call.answer}]
    failed = {"error": {"type": "unknown", "message": call.answer}} if call.failed else {}
    about = {"role": "tool", "tool_call_id": call.id, "function": call.tool}
    return about | {"content": content, **failed}


def terminal_bench(folder: Path, seed: int) -> list[Path]:
    """The trials of a run, with their tests; by the seed the agent ran out of time."""
    story = Story(seed)
    trials = [
        {
            "trial_name": f"task-{number}.1-of-1.{seed}", "task_id": f"task-{number}",
            "instruction": story.words(12), "is_resolved": bool(story.some(1)),
            "failure_mode": "agent_timeout" if seed % 3 == 0 else "none",
            "parser_results": {
                f"test_{story.hex(6)}": ("failed", "passed")[story.some(1)]
                for _ in range(1 + story.some(4))
            },
            "total_input_tokens": 1200, "total_output_tokens": 1 + story.some(90),
            "trial_started_at": story.now(), "trial_ended_at": story.now(),
        }
        for number in range(1 + story.some(2))
    ]  # fmt: skip
    run = {"id": f"run-{seed}", "accuracy": 0.5, "results": trials}
    return [_one(folder / f"results-{seed}.json", run)]


def openhands(folder: Path, seed: int) -> list[Path]:
    """A trajectory; by the seed the line of an evaluation, its events in pairs, or of the SDK."""
    story = Story(seed)
    events: list[dict[str, Any]] = []
    for turn in story.turns():
        events += _sdk_turn(story, turn.prompt) if seed % 3 == 2 else _asked(story, turn.prompt)
        for thought, text, calls in turn.answers:
            for call in calls:
                made = _sdk_call if seed % 3 == 2 else _run
                events += made(story, call, thought, len(events))
            if seed % 3 != 2:
                events.append(
                    {"id": len(events), "timestamp": story.now(), "source": "agent",
                     "action": "message", "args": {"content": text}}
                )  # fmt: skip
    if seed % 3 == 1:
        history = [events[at : at + 2] for at in range(0, len(events), 2)] if seed % 2 else events
        whole = {"instance_id": f"repo__{seed}", "history": history, "test_result": {}}
        return [lines(folder / f"output-{seed}.jsonl", [whole])]
    return [_one(folder / f"{seed}.json", events)]


def _asked(story: Story, prompt: str) -> list[dict[str, Any]]:
    at = {"id": f"u{story.hex(6)}", "timestamp": story.now()}
    state = {"observation": "agent_state_changed", "extras": {"agent_state": "running"}}
    return [
        at | {"source": "user", "action": "message", "args": {"content": prompt}},
        at | {"id": f"s{story.hex(6)}", "source": "environment", "content": "", **state},
    ]


def _run(story: Story, call: Call, thought: str, number: int) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 900, "completion_tokens": 1 + story.some(40)}
    answer = {"id": f"r{story.hex(12)}", "model": "claude", "usage": usage}
    told = {"function_name": call.tool, "tool_call_id": call.id, "model_response": answer}
    at = {"id": number, "timestamp": story.now(), "source": "agent"}
    extras = {"metadata": {"exit_code": int(call.failed)}}
    then = {"id": number + 1, "timestamp": story.now(), "source": "agent", "cause": number}
    return [
        at | {"action": "run", "args": {**call.arguments, "thought": thought}}
        | {"tool_call_metadata": told},
        then | {"observation": "run", "content": call.answer, "extras": extras},
    ]  # fmt: skip


def _sdk_turn(story: Story, prompt: str) -> list[dict[str, Any]]:
    message = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    about = {"kind": "MessageEvent", "timestamp": story.now(), "source": "user"}
    return [about | {"llm_message": message}]


def _sdk_call(story: Story, call: Call, thought: str, _: int) -> list[dict[str, Any]]:
    about = {"tool_name": call.tool, "tool_call_id": call.id}
    action = {"kind": "ToolAction", **call.arguments}
    asked = {"kind": "ActionEvent", "source": "agent", "timestamp": story.now(), "action": action}
    asked |= {"thought": [{"type": "text", "text": thought}]}
    said: dict[str, Any] = {"source": "environment", "timestamp": story.now()}
    if call.failed and story.some(1):
        return [about | asked, about | said | {"kind": "AgentErrorEvent", "error": call.answer}]
    content = [{"type": "text", "text": call.answer}]
    observed = {"content": content, "is_error": call.failed}
    return [
        about | asked,
        about | said | {"kind": "ObservationEvent", "observation": observed},
    ]


def _one(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value, ensure_ascii=False))
    return file
