"""Session files as Claude Code and Codex write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.transcripts.story import Call, Story


def lines(file: Path, found: list[Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found))
    return file


class ClaudeCodeFile:
    """The lines of one session of Claude Code, as they are appended."""

    def __init__(self, story: Story, session: str, folder: Path, *, agent: str = "") -> None:
        self.story, self.session, self.folder, self.agent = story, session, folder, agent
        self.lines: list[dict[str, Any]] = []
        self._parent: str | None = None

    def line(self, kind: str, message: Any, **more: Any) -> None:
        made: dict[str, Any] = {
            "parentUuid": self._parent,
            "isSidechain": bool(self.agent),
            "userType": "external",
            "cwd": "/home/dev/tickets",
            "sessionId": self.session,
            "version": "2.1.30",
            "gitBranch": "main",
            **({"agentId": self.agent} if self.agent else {}),
            "type": kind,
            "message": message,
            **more,
            "uuid": self.story.uuid(),
            "timestamp": self.story.now(),
        }
        self._parent = made["uuid"]
        self.lines.append(made)

    def play(self) -> None:
        for turn in self.story.turns():
            self.line("user", {"role": "user", "content": turn.prompt})
            for thought, text, calls in turn.answers:
                self._answer(thought, text, calls)

    def _answer(self, thought: str, text: str, calls: list[Call]) -> None:
        """One answer, spread over a line for each block; each line repeats the usage."""
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": thought, "signature": self.story.hex(40)},
            {"type": "text", "text": text},
            *(
                {"type": "tool_use", "id": c.id, "name": c.tool, "input": c.arguments}
                for c in calls
            ),
        ]
        message_id, request_id = f"msg_{self.story.hex(20)}", f"req_{self.story.hex(20)}"
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": self.story.some(500),
            "cache_read_input_tokens": self.story.some(5000),
            "output_tokens": 1,
        }
        written = 10 + self.story.some(400)
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            message = {
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [block],
                "stop_reason": ("tool_use" if calls else "end_turn") if last else None,
                "usage": usage | ({"output_tokens": written} if last else {}),
            }
            self.line("assistant", message, requestId=request_id)
        for call in calls:
            self._result(call)

    def _result(self, call: Call) -> None:
        content: Any = call.answer
        if not call.failed and self.story.random.random() < 0.3:
            name = f"{call.id}.txt"
            saved = self.folder / self.session / "tool-results" / name
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(call.answer * 30)
            content = (
                "<persisted-output>\nOutput too large (54.1KB). Full output saved to: "
                f"/home/other/.claude/projects/-tickets/{self.session}/tool-results/{name}\n\n"
                f"Preview (first 2KB):\n{call.answer}\n...\n</persisted-output>"
            )
        elif self.story.random.random() < 0.3:
            content = [{"type": "text", "text": call.answer}]
        block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        if call.failed:
            block["is_error"] = True
        details = f"Error: {call.answer}" if call.failed else {"stdout": call.answer, "stderr": ""}
        self.line("user", {"role": "user", "content": [block]}, toolUseResult=details)

    def write(self) -> Path:
        name = f"{self.session}/subagents/agent-{self.agent}" if self.agent else self.session
        return lines(self.folder / f"{name}.jsonl", self.lines)


def claude_code(folder: Path, seed: int) -> list[Path]:
    """A session; by the seed with a subagent, with notes, resumed, or with a broken last line."""
    story = Story(seed)
    main = ClaudeCodeFile(story, story.uuid(), folder)
    main.lines.append({"type": "summary", "summary": "An earlier one", "leafUuid": story.uuid()})
    snapshot = {"messageId": story.uuid(), "trackedFileBackups": {}, "timestamp": story.now()}
    main.lines.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": snapshot})
    main.play()
    main.lines.append({"type": "hologram", "sessionId": main.session, "beam": [1, 2]})
    main.line("assistant", {"role": "assistant", "content": [{"type": "aura", "hue": 7}]})
    written = [main.write()]
    if seed % 2:
        helper = ClaudeCodeFile(story, main.session, folder, agent=story.hex(7))
        helper.play()
        helper.write()  # It is found beside its parent.
    if seed % 5 == 2:
        with written[0].open("a") as file:
            file.write('{"type":"user","sessionId":"' + main.session)
    if seed % 3 == 0:
        again = ClaudeCodeFile(story, story.uuid(), folder)
        conversation = [line for line in main.lines if "message" in line]
        again.lines = [line | {"sessionId": again.session} for line in conversation]
        again.play()
        written.append(again.write())
    return written


class Rollout:
    """The lines of one session of Codex."""

    def __init__(self, story: Story, *, born: datetime | None = None) -> None:
        self.story = story
        self.id = _uuid7(story, born or story.time)
        self.lines: list[dict[str, Any]] = []
        self._written = 0
        meta = {"id": self.id, "cwd": "/home/dev/tickets", "cli_version": "0.80.0"}
        self.meta = meta | {"timestamp": story.now(), "base_instructions": {"text": "Be brief."}}

    def line(self, kind: str, payload: Any) -> None:
        self.lines.append({"timestamp": self.story.now(), "type": kind, "payload": payload})

    def item(self, kind: str, **fields: Any) -> None:
        self.line("response_item", {"type": kind, **fields})

    def shown(self, kind: str, **fields: Any) -> None:
        self.line("event_msg", {"type": kind, **fields})

    def play(self) -> None:
        for turn in self.story.turns():
            turn_id = _uuid7(self.story, self.story.time)
            self.shown("task_started", turn_id=turn_id, model_context_window=272000)
            self.line("turn_context", {"turn_id": turn_id, "model": "gpt-5.2-codex"})
            self.item("message", role="user", content=_parts("input_text", turn.prompt))
            self.shown("user_message", message=turn.prompt, images=[])
            for thought, text, calls in turn.answers:
                self.shown("agent_reasoning", text=thought)
                summary = [{"type": "summary_text", "text": thought}]
                self.item("reasoning", summary=summary, encrypted_content=self.story.hex(60))
                self.item("message", role="assistant", content=_parts("output_text", text))
                self.shown("agent_message", message=text)
                for call in calls:
                    self._call(call)
                self._count()
            self.shown("task_complete", turn_id=turn_id, last_agent_message=text)

    def _count(self) -> None:
        last = {"input_tokens": 100 + self.story.some(900), "output_tokens": self.story.some(200)}
        self._written += last["output_tokens"] + last["input_tokens"]
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": self._written}}
        for _ in range(1 + self.story.some(1)):  # It is told again when limits change.
            self.shown("token_count", info=info, rate_limits={"primary": {"used_percent": 3}})
        self.shown("token_count", info=None, rate_limits={"primary": {"used_percent": 4}})

    def _call(self, call: Call) -> None:
        kind = self.story.some(4)
        if kind == 0:
            patch = "*** Begin Patch\n" + call.arguments["path"]
            self.item("custom_tool_call", call_id=call.id, name="apply_patch", input=patch)
            code = int(call.failed)
            output = json.dumps({"output": call.answer, "metadata": {"exit_code": code}})
            self.item("custom_tool_call_output", call_id=call.id, output=output)
            return
        self.item(
            "function_call",
            call_id=call.id,
            name=call.tool,
            arguments=json.dumps(call.arguments, ensure_ascii=False),
        )
        self.shown("exec_command_begin", call_id=call.id, command=["bash", "-lc", "x"])
        output: Any = call.answer
        if kind == 1:
            code = int(call.failed)
            output = f"Exit code: {code}\nWall time: 0.1 seconds\nOutput:\n{call.answer}"
        elif kind == 2:
            code = 2 * call.failed
            output = (
                f"Wall time: 1 seconds\nProcess exited with code {code}\nOutput:\n{call.answer}"
            )
        elif kind == 3:
            text = call.answer
            outcome = {"Err": text} if call.failed else {"Ok": {"content": [], "isError": False}}
            self.shown("mcp_tool_call_end", call_id=call.id, result=outcome)
        else:
            code = 127 * call.failed
            self.shown(
                "exec_command_end", call_id=call.id, exit_code=code, aggregated_output=call.answer
            )
        self.item("function_call_output", call_id=call.id, output=output)

    def write(self, folder: Path, *, packed: bool = False) -> Path:
        first = {"timestamp": self.meta["timestamp"], "type": "session_meta", "payload": self.meta}
        day = folder / "sessions" / "2026" / "03" / "01"
        file = lines(day / f"rollout-2026-03-01T00-00-00-{self.id}.jsonl", [first, *self.lines])
        if not packed:
            return file
        import zstandard

        small = file.with_suffix(".jsonl.zst")
        small.write_bytes(zstandard.ZstdCompressor().compress(file.read_bytes()))
        file.unlink()
        return small


def codex(folder: Path, seed: int) -> list[Path]:
    """A session; by the seed packed, forked, or with what nobody knows."""
    story = Story(seed)
    main = Rollout(story)
    main.play()
    if seed % 2:
        main.shown("hologram", beam=[1])
        main.item("aura", hue=7)
        main.line("telepathy", {"thought": "x"})
        main.line("compacted", {"message": "so far", "replacement_history": [{"type": "message"}]})
        main.shown("error", message="stream disconnected")
    written = [main.write(folder, packed=seed % 3 == 1)]
    if seed % 5 == 0:
        fork = Rollout(story, born=story.time + timedelta(seconds=5))
        fork.meta["forked_from_id"] = main.id
        at = fork.meta["timestamp"]
        origin = {"timestamp": at, "type": "session_meta", "payload": main.meta}
        fork.lines = [origin, *({**line, "timestamp": at} for line in main.lines)]
        story.time += timedelta(seconds=10)
        fork.play()
        written.append(fork.write(folder))
    return written


def _parts(kind: str, text: str) -> list[dict[str, str]]:
    return [{"type": kind, "text": text}]


def _uuid7(story: Story, time: datetime) -> str:
    milliseconds = int((time - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    made = f"{milliseconds:012x}7{story.hex(3)}8{story.hex(15)}"
    return f"{made[:8]}-{made[8:12]}-{made[12:16]}-{made[16:20]}-{made[20:]}"
