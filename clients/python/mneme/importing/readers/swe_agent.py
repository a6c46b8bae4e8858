"""SWE-agent's trajectories, `INSTANCE.traj`.

Every step of `trajectory` is a thought, an action and what was observed; `history` repeats it as
messages, and alone has the prompts and the calls' structured arguments.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from mneme.importing.blocks import count_of, message_event
from mneme.importing.messages import raw, text_of, tool_answer, tool_call
from mneme.importing.plan import Planned, UnusableError, digest, label, mapping_at, tidy
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record

_AGENT = "swe-agent"
_STEP = ("action", "observation", "response", "thought", "execution_time", "state", "query")
_REPEATS = ("query", "messages", "response")
_WORD = re.compile(r"\s*([A-Za-z_][\w.-]*)")
_SUBMITTED = "submitted"


class SweAgent(Reader):
    """Reads one trajectory."""

    name = "swe-agent"
    title = "trajectories of SWE-agent"

    @classmethod
    def detects(cls, value: Any) -> int:
        """Its steps have actions and observations."""
        steps = value.get("trajectory") if isinstance(value, Mapping) else None
        if not isinstance(steps, list) or "history" not in value:
            return 0
        first = steps[0] if steps else {}
        ours = isinstance(first, Mapping) and ("action" in first or not steps)
        return 80 if ours and "info" in value else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one trajectory as one session."""
        value, unmasked = record.value, record.unmasked
        if not isinstance(value, Mapping) or not isinstance(value.get("trajectory"), list):
            raise UnusableError("holds no trajectory")
        planned = Planned(record.place)
        info = mapping_at(value, "info")
        history = [m for m in value.get("history") or [] if isinstance(m, Mapping)]
        session_id = _session_id(value, unmasked)
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or _AGENT,
            "user_id": self.defaults.user_id,
            "project": self.defaults.project,
            "tags": list(self.defaults.tags),
            "metadata": {"environment": str(value["environment"])}
            if value.get("environment")
            else None,
        }
        for number, message in enumerate(_prompts(history)):
            event = message_event(str(message.get("role")), _content(message), planned)
            flags = {key: True for key in ("is_demo",) if message.get(key)}
            planned.add(session_id, f"{session_id}:prompt:{number}", event | _with(event, flags))
        calls = deque(_calls(history))
        for number, step in enumerate(value["trajectory"]):
            for place, event in enumerate(_step(step, number, calls, planned)):
                planned.add(session_id, f"{session_id}:{number}:{place}", event)
        status = info.get("exit_status")
        if isinstance(status, str) and status:
            self._end(planned, session_id, info, status)
        yield planned

    def _end(self, planned: Planned, session_id: str, info: Mapping[str, Any], status: str) -> None:
        """What a finished trajectory says of its outcome and cost."""
        outcome = raw("submission", dict(info), None, planned.notes, planned.kept)
        submission = info.get("submission")
        words = f"{status}\n{submission}" if isinstance(submission, str) else status
        shown = message_event("assistant", words, planned)["text"]
        planned.add(session_id, f"{session_id}:outcome", outcome | {"text": shown})
        stats = info.get("model_stats")
        if isinstance(stats, Mapping):
            cost = stats.get("instance_cost", stats.get("total_cost"))
            event = {
                "event_type": "cost_tracked",
                "cost_usd": float(cost) if isinstance(cost, int | float) else None,
                "input_tokens": count_of(stats, "tokens_sent"),
                "output_tokens": count_of(stats, "tokens_received"),
                "payload": {"model_stats": tidy(dict(stats), planned.notes)},
            }
            planned.add(session_id, f"{session_id}:cost", event)
        failed = not status.startswith(_SUBMITTED)
        planned.end = {"session_id": session_id, "status": "error" if failed else "completed"}


def _session_id(value: Mapping[str, Any], unmasked: Mapping[str, Any]) -> str:
    """An id made of what was to be done, and with what: it is there from the first step on."""
    history = unmasked.get("history") or []
    task = [unmasked.get("environment"), unmasked.get("replay_config"), history[:2]]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(value.get("environment") or "")).strip("-")[:100]
    return f"{_AGENT}-{name}-{digest(task)[:20]}" if name else f"{_AGENT}-{digest(task)[:20]}"


def _prompts(history: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What the agent was told before its first step, demonstrations included."""
    for number, message in enumerate(history):
        if message.get("role") == "assistant" and not message.get("is_demo"):
            return history[:number]
    return history


def _calls(history: list[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The agent's own actions with the call of a function that stands behind each."""
    for message in history:
        calls = message.get("tool_calls")
        if message.get("role") != "assistant" or message.get("is_demo"):
            continue
        call = calls[0] if isinstance(calls, list) and calls else {}
        action = str(message.get("action") or "").strip()
        if action:
            yield action, call if isinstance(call, Mapping) else {}


def _step(
    step: Any, number: int, calls: deque[tuple[str, Mapping[str, Any]]], planned: Planned
) -> Iterator[dict[str, Any]]:
    if not isinstance(step, Mapping):
        yield raw("step", step, "step that is no object", planned.notes, planned.kept)
        return
    action = text_of(step.get("action"))
    call = _matching(action, calls) if action else {}
    rest = {k: v for k, v in step.items() if k not in (*_STEP, *_REPEATS) and v}
    said = text_of(step.get("response")) or text_of(step.get("thought"))
    thought = text_of(step.get("thought"))
    more = {"thought": thought} if thought and thought != said else {}
    if said:
        yield message_event("assistant", said, planned, **tidy(more, planned.notes))
    if not action and not step.get("observation"):
        return
    function = mapping_at(call, "function")
    word = _WORD.match(action)
    name = label(function.get("name") or (word[1] if word else "action"), planned.notes)
    call_id = label(call.get("id") or f"step-{number}", planned.notes)
    given = function.get("arguments", {"command": action})
    event = tool_call(name, call_id, given, planned.notes)
    yield event | _with(event, {"action": action} if function else {})
    observed = text_of(step.get("observation"))
    if step.get("state"):
        rest["state"] = step["state"]
    answer = tool_answer(
        name, call_id, observed, None, notes=planned.notes, more=tidy(rest, planned.notes)
    )
    took = step.get("execution_time")
    yield answer | {"duration": timedelta(seconds=took) if isinstance(took, int | float) else None}


def _matching(action: str, calls: deque[tuple[str, Mapping[str, Any]]]) -> Mapping[str, Any]:
    """The call of an action: the history's next, when it is of this action.

    Else the action was refused, and the history does not tell of it.
    """
    return calls.popleft()[1] if calls and calls[0][0] == action.strip() else {}


def _content(message: Mapping[str, Any]) -> str:
    return text_of(message.get("content")) or "[empty]"


def _with(event: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {"payload": {**event["payload"], **more}}
