"""Counts what transcripts hold, by walking their JSON, and what a server's timeline holds.

For each format it knows only where arguments, results and errors stand. It shares no code with what
imports them.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Held:
    """What was found, each thing as canonical JSON, with how often it occurs."""

    arguments: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    tokens_written: int = 0

    def call(self, arguments: Any) -> None:
        self.arguments[canonical(arguments)] += 1

    def answer(self, text: Any, *, failed: bool) -> None:
        (self.errors if failed else self.results)[canonical(text)] += 1


def canonical(value: Any) -> str:
    """A JSON value, or the text of one, as one text: numbers as floats, keys sorted."""
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return canonical(json.loads(value))
            except ValueError:
                pass
        return json.dumps(value)
    return json.dumps(_floats(value), sort_keys=True)


def _floats(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, list):
        return [_floats(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _floats(item) for key, item in value.items()}
    return value


def on_the_timeline(events: Iterable[Any]) -> Held:
    """What a server's events hold, as `ListEvents` gives them in JSON."""
    held = Held()
    for event in events:
        payload = event.get("payload") or {}
        kind = event["event_type"]
        if kind == "tool_call":
            held.call(payload.get("arguments"))
        elif kind == "tool_response":
            held.answer(payload.get("result", ""), failed=False)
        elif kind == "tool_error":
            held.answer(event.get("error"), failed=True)
        elif kind == "custom" and event.get("name") == "memory":
            held.facts[event["text"]] += 1
        held.tokens_written += int(event.get("output_tokens") or 0)
    return held


def held_in(form: str, folder: Path) -> Held:
    """What all files of a folder hold."""
    held = Held()
    WALKS[form](held, folder)
    return held


def _json_lines(file: Path) -> Iterator[Any]:
    data = file.read_bytes()
    if file.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    for line in data.decode().split("\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue  # Blank, or what a killed writer left.


def _joined(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)
    return content or ""


def _claude_code(held: Held, folder: Path) -> None:
    seen: set[str] = set()
    usage: dict[str, int] = {}
    for file in sorted(folder.rglob("*.jsonl")):
        for line in _json_lines(file):
            message = line.get("message")
            if not isinstance(message, dict) or line["uuid"] in seen:
                continue
            seen.add(line["uuid"])
            if "usage" in message:
                usage[message["id"]] = message["usage"]["output_tokens"]
            blocks = message["content"] if isinstance(message["content"], list) else []
            for block in blocks:
                if block["type"] == "tool_use":
                    held.call(block["input"])
                elif block["type"] == "tool_result":
                    text = _joined(block.get("content"))
                    if "<persisted-output>" in text:
                        name = re.search(r"tool-results/(\S+)", text)
                        (saved,) = folder.rglob(name[1])  # type: ignore[index]
                        text = saved.read_text()
                    held.answer(text, failed=block.get("is_error") is True)
    held.tokens_written = sum(usage.values())


def _codex(held: Held, folder: Path) -> None:
    counted: set[str] = set()
    for file in sorted(folder.rglob("rollout-*")):
        lines = list(_json_lines(file))
        if "forked_from_id" in lines[0]["payload"]:
            at = lines[0]["payload"]["timestamp"]
            lines = [line for line in lines if line["timestamp"] != at]
        wrong = {
            line["payload"]["call_id"]
            for line in lines
            if line["payload"].get("exit_code") or "Err" in (line["payload"].get("result") or ())
        }
        for line in lines:
            item = line["payload"]
            kind = item.get("type", "")
            if kind in ("function_call", "custom_tool_call"):
                held.call(item.get("arguments", item.get("input")))
            elif kind in ("function_call_output", "custom_tool_call_output"):
                said = re.search(
                    r"(?:Exit code: |with code |\"exit_code\": )([1-9])", item["output"]
                )
                failed = bool(said) or item["call_id"] in wrong
                held.answer(item["output"], failed=failed)
            elif kind == "token_count" and item["info"]:
                key = f"{file.name} {json.dumps(item['info']['total_token_usage'])}"
                if key not in counted:
                    counted.add(key)
                    held.tokens_written += item["info"]["last_token_usage"]["output_tokens"]


def _anthropic(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json"):
        value = json.loads(file.read_text())
        messages = value if isinstance(value, list) else value["messages"]
        answer = [] if isinstance(value, list) else [value.get("response") or {}]
        for message in [*messages, *answer]:
            held.tokens_written += message.get("usage", {}).get("output_tokens", 0)
            content = message.get("content")
            for block in content if isinstance(content, list) else []:
                if block["type"] == "tool_use":
                    held.call(block["input"])
                elif block["type"] == "tool_result":
                    failed = block.get("is_error") is True
                    held.answer(_joined(block["content"]), failed=failed)


def _responses(held: Held, folder: Path) -> None:
    for file in [*folder.glob("*.json"), *folder.glob("*.jsonl")]:
        usage: dict[str, int] = {}
        items: dict[str, Any] = {}
        for record in _json_lines(file) if file.suffix == ".jsonl" else [_of(file)]:
            found = record if isinstance(record, list) else record["input"]
            if isinstance(record, dict):
                response = record["response"]
                usage[response["id"]] = response["usage"]["output_tokens"]
                found = [*found, *response["output"]]
            for item in found:
                key = item.get("call_id") or item.get("id") or json.dumps(item)
                items[f"{item.get('type')} {key}"] = item
        held.tokens_written += sum(usage.values())
        for item in items.values():
            if item.get("type") in ("function_call", "mcp_call"):
                held.call(item["arguments"])
            if item.get("type") == "mcp_call":
                failed = "error" in item
                held.answer(item["error" if failed else "output"], failed=failed)
            if item.get("type") == "function_call_output":
                # The format marks no errors; an answer that begins with the word is one.
                held.answer(item["output"], failed=item["output"].startswith("Error"))


def _swe_agent(held: Held, folder: Path) -> None:
    for file in folder.glob("*.traj"):
        value = _of(file)
        said = [m for m in value["history"] if m["role"] == "assistant"]
        for step, message in zip(value["trajectory"], said, strict=True):
            called = message.get("tool_calls")
            plain = {"command": step["action"]}
            held.call(called[0]["function"]["arguments"] if called else plain)
            held.answer(step["observation"], failed=False)
        if "exit_status" in value["info"]:
            held.tokens_written += value["info"]["model_stats"]["tokens_received"]


def _mini_swe_agent(held: Held, folder: Path) -> None:
    for file in folder.glob("*.traj.json"):
        for message in _of(file)["messages"]:
            content = message["content"]
            usage = message.get("extra", {}).get("response", {}).get("usage", {})
            held.tokens_written += usage.get("completion_tokens", 0)
            for call in message.get("tool_calls", ()):
                held.call(call["function"]["arguments"])
            if message["role"] == "assistant" and "```bash\n" in content:
                held.call({"command": content.split("```bash\n")[1].split("\n```")[0]})
            if content.startswith("<returncode>"):
                held.answer(content, failed=not content.startswith("<returncode>0<"))


def _agentlens(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json"):
        for event in _of(file)["events"]:
            payload = event["payload"]
            if event["eventType"] == "tool_call":
                held.call(payload["arguments"])
            elif event["eventType"] in ("tool_response", "tool_error"):
                failed = event["eventType"] == "tool_error"
                held.answer(payload["error" if failed else "result"], failed=failed)
            held.tokens_written += payload.get("usage", {}).get("outputTokens", 0)


def _mem0(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json"):
        value = _of(file)
        for fact in value["results"] if isinstance(value, dict) else value:
            held.facts[fact["memory"]] += 1


def _tau2_bench(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json"):
        for run in _of(file)["simulations"]:
            several = [one.get("tool_messages", [one]) for one in run["messages"]]
            for message in (one for part in several for one in part):
                held.tokens_written += message.get("usage", {}).get("completion_tokens", 0)
                for call in message.get("tool_calls") or ():
                    held.call(call["arguments"])
                if message["role"] == "tool":
                    held.answer(message["content"], failed=message["error"])


def _inspect_ai(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json"):
        for sample in _of(file)["samples"]:
            for usage in sample["model_usage"].values():
                held.tokens_written += usage["output_tokens"]
            for message in sample["messages"]:
                for call in message.get("tool_calls", ()):
                    held.call(call["arguments"])
                if "error" in message:
                    held.answer(message["error"]["message"], failed=True)
                elif message["role"] == "tool":
                    held.answer(_joined(message["content"]), failed=False)


def _terminal_bench(held: Held, folder: Path) -> None:
    # What the agent called is in no file of results; what its tests say is.
    for file in folder.glob("*.json"):
        for trial in _of(file)["results"]:
            held.tokens_written += trial["total_output_tokens"]
            for status in trial["parser_results"].values():
                good = status == "passed"
                held.answer(status if good else f"the test {status}", failed=not good)


def _openhands(held: Held, folder: Path) -> None:
    for file in folder.glob("*.json*"):
        value = _of(file)
        history = value if isinstance(value, list) else value["history"]
        pairs = [one if isinstance(one, list) else [one] for one in history]
        for event in (one for pair in pairs for one in pair):
            told = event.get("tool_call_metadata", {}).get("model_response", {})
            held.tokens_written += told.get("usage", {}).get("completion_tokens", 0)
            if event.get("action") == "run":
                held.call({key: it for key, it in event["args"].items() if key != "thought"})
            elif event.get("observation") == "run":
                failed = event["extras"]["metadata"]["exit_code"] > 0
                held.answer(event["content"], failed=failed)
            elif event.get("kind") == "ActionEvent":
                held.call({key: it for key, it in event["action"].items() if key != "kind"})
            elif event.get("kind") == "ObservationEvent":
                observed = event["observation"]
                held.answer(_joined(observed["content"]), failed=observed["is_error"])
            elif event.get("kind") == "AgentErrorEvent":
                held.answer(event["error"], failed=True)


def _of(file: Path) -> Any:
    return json.loads(file.read_text())


WALKS: dict[str, Callable[[Held, Path], None]] = {
    "agentlens": _agentlens,
    "anthropic": _anthropic,
    "claude-code": _claude_code,
    "codex": _codex,
    "inspect-ai": _inspect_ai,
    "mem0": _mem0,
    "mini-swe-agent": _mini_swe_agent,
    "openhands": _openhands,
    "responses": _responses,
    "swe-agent": _swe_agent,
    "tau2-bench": _tau2_bench,
    "terminal-bench": _terminal_bench,
}
