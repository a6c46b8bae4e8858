"""mini-SWE-agent's trajectories, `INSTANCE.traj.json`.

They are chats whose `extra` says more: the actions that were taken, the return code of each, and
the model's whole answer with its usage. In old ones an action is a block of shell in the text, and
what it answered is a message of the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import count_of, message_event
from mneme.importing.messages import parse_time, raw, text_of, tool_answer, tool_call
from mneme.importing.plan import (
    Planned,
    UnusableError,
    clean,
    clip,
    digest,
    label,
    mapping_at,
    tidy,
)
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record

_AGENT = "mini-swe-agent"
_SHELL = "bash"
_ACTION = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_RETURNED = re.compile(r"\s*(?:<exception>.*?</exception>\s*)?<returncode>\s*(-?\d+)", re.DOTALL)
# The templates of format errors that its configurations have.
_REFUSED = re.compile(
    r"\s*(?:Format error:|Please always provide EXACTLY ONE action|Tool call error:|"
    r"Your output was malformatted|No tool calls found in the response)",
    re.IGNORECASE,
)
_SPOKEN = ("system", "user", "assistant", "tool", "exit")
_SUBMITTED = "submitted"


class MiniSweAgent(Reader):
    """Reads one trajectory."""

    name = "mini-swe-agent"
    title = "trajectories of mini-SWE-agent"

    @classmethod
    def detects(cls, value: Any) -> int:
        """It says its format, or its version."""
        if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
            return 0
        info = value.get("info")
        version = isinstance(info, Mapping) and "mini_version" in info
        said = str(value.get("trajectory_format", "")).startswith("mini-swe-agent")
        return 80 if version or said else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one trajectory as one session."""
        value = record.value
        if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
            raise UnusableError("holds no messages")
        yield _Trajectory(value, Planned(record.place)).plan(self, record.unmasked)


class _Trajectory:
    """One trajectory while it is planned."""

    def __init__(self, value: Mapping[str, Any], planned: Planned) -> None:
        self._value = value
        self._planned = planned
        self._calls: dict[str, str] = {}
        # The action that waits for its answer, where no id joins them.
        self._open = ""

    def plan(self, reader: Reader, unmasked: Mapping[str, Any]) -> Planned:
        """Plan its session."""
        info = mapping_at(self._value, "info")
        session_id = self._session_id(unmasked)
        facts = {"mini_version": info.get("mini_version"), "instance": self._instance()}
        self._planned.start = {
            "session_id": session_id,
            "agent_id": reader.defaults.agent_id or _AGENT,
            "user_id": reader.defaults.user_id,
            "project": reader.defaults.project,
            "tags": list(reader.defaults.tags),
            "metadata": {key: fact for key, fact in facts.items() if fact} or None,
        }
        for number, message in enumerate(self._value["messages"]):
            common = _time(message)
            for place, event in enumerate(self._events(message, number)):
                self._planned.add(session_id, f"{session_id}:{number}:{place}", common | event)
        status = info.get("exit_status")
        if isinstance(status, str) and status:
            event = raw("submission", info, None, self._planned.notes, self._planned.kept)
            words = "\n".join(filter(None, [status, text_of(info.get("submission"))]))
            text = message_event("assistant", words, self._planned)["text"]
            self._planned.add(session_id, f"{session_id}:outcome", event | {"text": text})
            failed = not status.lower().startswith(_SUBMITTED)
            end = {"session_id": session_id, "status": "error" if failed else "completed"}
            self._planned.end = end
        return self._planned

    def _instance(self) -> str:
        found = self._value.get("instance_id")
        return label(found, self._planned.notes) if isinstance(found, str) else ""

    def _session_id(self, unmasked: Mapping[str, Any]) -> str:
        config = mapping_at(unmasked, "info").get("config")
        made = digest([unmasked.get("instance_id"), config, unmasked["messages"][:2]])[:20]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._instance()).strip("-")[:100]
        return "-".join(filter(None, [_AGENT, name, made]))

    def _events(self, message: Any, number: int) -> Iterator[dict[str, Any]]:
        notes, kept = self._planned.notes, self._planned.kept
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in _SPOKEN:
            kind = message.get("type") if isinstance(message, Mapping) else None
            if isinstance(kind, str) and kind.endswith("_call_output"):
                yield self._answer(message, _extra(message))
                return
            yield raw("message", message, f"role {role!r}", notes, kept)
            return
        extra = _extra(message)
        if role == "exit":
            event = raw("exit", message, None, notes, kept)
            yield event | {"text": message_event("user", _text(message), self._planned)["text"]}
            said = extra.get("exit_status")
            if isinstance(said, str) and said and not said.lower().startswith(_SUBMITTED):
                yield self._error("exit", "\n".join(filter(None, [said, _text(message)])))
        elif role == "assistant":
            yield from self._turn(message, extra, number)
        elif role == "tool" or "returncode" in extra or self._is_old_answer(message):
            yield self._answer(message, extra)
        elif role == "user" and _is_refusal(message, extra):
            # The harness speaks, not the user: what the model wrote could not be run.
            yield self._error("format", _text(message))
        elif _text(message):
            yield message_event(str(role), _text(message), self._planned)

    def _turn(
        self, message: Mapping[str, Any], extra: Mapping[str, Any], number: int
    ) -> Iterator[dict[str, Any]]:
        text = _text(message)
        if text:
            yield message_event("assistant", text, self._planned)
        for place, (name, call_id, given) in enumerate(_actions(message, extra, text)):
            call = label(call_id or f"action-{number}-{place}", self._planned.notes)
            self._calls[call] = name
            self._open = call
            yield tool_call(name, call, given, self._planned.notes)
        response = mapping_at(extra, "response")
        usage = mapping_at(response, "usage")
        if usage:
            cost = extra.get("cost")
            yield {
                "event_type": "llm_response",
                "model": label(response.get("model") or "", self._planned.notes),
                "input_tokens": count_of(usage, "prompt_tokens") or count_of(usage, "input_tokens"),
                "output_tokens": count_of(usage, "completion_tokens")
                or count_of(usage, "output_tokens"),
                "cost_usd": float(cost) if isinstance(cost, int | float) else None,
                "payload": {"usage": tidy(dict(usage), self._planned.notes)},
            }

    def _error(self, name: str, text: str) -> dict[str, Any]:
        words = clip(clean(text, self._planned.notes), self._planned.notes)
        return {"event_type": "error", "name": name, "error": words}

    def _is_old_answer(self, message: Mapping[str, Any]) -> bool:
        return bool(self._open) and _RETURNED.match(_text(message)) is not None

    def _answer(self, message: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
        said = message.get("tool_call_id") or message.get("call_id") or self._open
        call_id = label(said, self._planned.notes)
        name = self._calls.get(call_id, _SHELL)
        text = text_of(message.get("content", message.get("output")))
        found = _RETURNED.match(text)
        code = extra.get("returncode", int(found[1]) if found else None)
        facts = {"returncode": code, "exception_info": extra.get("exception_info")}
        output = extra.get("raw_output")
        if isinstance(output, str) and output and output not in text:
            facts["raw_output"] = output  # The model saw only its beginning and end.
        more = {key: value for key, value in facts.items() if value not in (None, "")}
        failed = code not in (None, 0) or bool(extra.get("exception_info"))
        error = (text or f"return code {code}") if failed else None
        more = tidy(more, self._planned.notes)
        return tool_answer(name, call_id, text, error, notes=self._planned.notes, more=more)


def _actions(
    message: Mapping[str, Any], extra: Mapping[str, Any], text: str
) -> Iterator[tuple[str, str, Any]]:
    """The name, id and arguments of each action, from the first place that tells them."""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        for call in calls:
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                name = str(function.get("name") or _SHELL)
                yield name, str(call.get("id") or ""), function.get("arguments")
        return
    actions = extra.get("actions")
    if isinstance(actions, list):
        for action in actions:
            if isinstance(action, Mapping) and "command" in action:
                call_id = action.get("tool_call_id") or ""
                yield _SHELL, str(call_id), {"command": action["command"]}
        return
    found = _ACTION.findall(text)
    if len(found) == 1:  # Another number of blocks was refused, and nothing was run.
        yield _SHELL, "", {"command": found[0]}


def _is_refusal(message: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    """Whether a message of the user is the harness's, about an answer that it could not run."""
    if extra.get("interrupt_type") == "FormatError":
        return True
    return _REFUSED.match(_text(message)) is not None


def _extra(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(message, "extra")


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return json.dumps(content) if isinstance(content, Mapping) else text_of(content)


def _time(message: Any) -> dict[str, Any]:
    time = parse_time(_extra(message).get("timestamp")) if isinstance(message, Mapping) else None
    return {"timestamp": time} if time is not None else {}
