"""Results of tau2-bench: one file with the runs of a domain, each a conversation with its reward.

A run that its environment ended, not its agent, was not graded: its reward of 0 says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import count_of
from mneme.importing.messages import events_of, parse_time, raw
from mneme.importing.plan import (
    MAX_METADATA_BYTES,
    MAX_TAG,
    Planned,
    UnusableError,
    fit,
    identifier,
    label,
    mapping_at,
    tidy,
)
from mneme.importing.readers.base import Reader, attempted
from mneme.importing.reading import Broken, Record

_USER = "user-simulator"
_NOT_GRADED = ("infrastructure_error", "context_window_exceeded")
_ENDED_WELL = ("user_stop", "agent_stop")
_FACTS = ("task_id", "trial", "seed", "termination_reason", "agent_cost", "user_cost", "mode")
# What is kept of a message beside what it says; the whole answer of the model's provider is not.
_LEFT_OUT = frozenset(("raw_data", "audio_content", "timestamp", "cost", "usage"))


class Tau2Bench(Reader):
    """Reads a file of results."""

    name = "tau2-bench"
    title = "results of tau2-bench"

    @classmethod
    def detects(cls, value: Any) -> int:
        """It holds simulations of tasks, and says with which agent."""
        if not isinstance(value, Mapping) or not isinstance(value.get("simulations"), list):
            return 0
        return 85 if isinstance(mapping_at(value, "info").get("agent_info"), Mapping) else 0

    def read(self, record: Record) -> Iterator[Planned | Broken]:
        """Plan each simulation as one session."""
        value = record.value
        if not isinstance(value, Mapping) or not isinstance(value.get("simulations"), list):
            raise UnusableError("holds no simulations")
        tasks = {str(one.get("id")): one for one in value.get("tasks") or [] if _is_object(one)}
        for simulation in value["simulations"]:
            yield from attempted(record.place, self._run(record, simulation, value, tasks))

    def _run(
        self, record: Record, run: Any, whole: Mapping[str, Any], tasks: Mapping[str, Any]
    ) -> Iterator[Planned]:
        if not _is_object(run) or not run.get("id"):
            raise UnusableError("a simulation without an id")
        planned = Planned(record.place)
        session_id = identifier(f"tau2-{run['id']}")
        info = mapping_at(whole, "info")
        agent = mapping_at(info, "agent_info")
        model = label(agent.get("llm") or "", planned.notes)
        names: dict[str, str] = {}
        for number, message in enumerate(_messages(run)):
            for place, event in enumerate(_events(message, names, model, planned)):
                planned.add(session_id, f"{session_id}:{number}:{place}", event)
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id
            or model
            or label(agent.get("implementation") or "", planned.notes),
            "user_id": self.defaults.user_id,
            "project": self.defaults.project or _domain(info, planned),
            "tags": _tags(run, planned, self.defaults.tags),
            "metadata": _metadata(run, info, tasks, planned),
            "started_at": parse_time(run.get("start_time")),
        }
        well = run.get("termination_reason") in _ENDED_WELL
        planned.end = {
            "session_id": session_id,
            "status": "completed" if well else "error",
            "ended_at": parse_time(run.get("end_time")),
        }
        yield planned


def _messages(run: Mapping[str, Any]) -> Iterator[Any]:
    """The messages of a run; several answers of tools may stand in one."""
    for message in run.get("messages") or []:
        several = message.get("tool_messages") if _is_object(message) else None
        if isinstance(several, list):
            yield from several
        else:
            yield message


def _events(
    message: Any, names: dict[str, str], model: str, planned: Planned
) -> Iterator[dict[str, Any]]:
    if not _is_object(message):
        yield raw("message", message, "message that is no object", planned.notes, planned.kept)
        return
    said = {key: value for key, value in message.items() if key not in _LEFT_OUT}
    said["timestamp"] = message.get("timestamp")
    if message.get("role") == "tool":
        said |= {"tool_call_id": message.get("id"), "is_error": message.get("error") is True}
        said.pop("id", None)
    calls = [one for one in message.get("tool_calls") or [] if _is_object(one)]
    by_user = message.get("requestor") == "user" or any(c.get("requestor") == "user" for c in calls)
    who = {"agent_id": _USER} if by_user or message.get("role") == "user" else {}
    for event in events_of(said, names, planned.notes, planned.kept):
        yield event | who
    usage, cost = mapping_at(message, "usage"), message.get("cost")
    if message.get("role") == "assistant" and (usage or isinstance(cost, int | float)):
        yield _answered(message, usage, cost, model, planned)


def _answered(
    message: Mapping[str, Any], usage: Mapping[str, Any], cost: Any, model: str, planned: Planned
) -> dict[str, Any]:
    time = parse_time(message.get("timestamp"))
    return {
        "event_type": "llm_response",
        "model": model,
        "input_tokens": count_of(usage, "prompt_tokens"),
        "output_tokens": count_of(usage, "completion_tokens"),
        "cost_usd": float(cost) if isinstance(cost, int | float) else None,
        "payload": {"usage": tidy(dict(usage), planned.notes)},
        **({"timestamp": time} if time is not None else {}),
    }


def _metadata(
    run: Mapping[str, Any], info: Mapping[str, Any], tasks: Mapping[str, Any], planned: Planned
) -> dict[str, Any] | None:
    facts = {key: run[key] for key in _FACTS if run.get(key) is not None}
    graded = mapping_at(run, "reward_info")
    reward = graded.get("reward")
    if isinstance(reward, int | float) and run.get("termination_reason") not in _NOT_GRADED:
        facts["reward"] = reward
    for key in ("reward_breakdown", "reward_basis"):
        if graded.get(key):
            facts[key] = graded[key]
    purpose = mapping_at(tasks.get(str(run.get("task_id"))), "description").get("purpose")
    if isinstance(purpose, str) and purpose.strip():
        facts["task"] = purpose
    for key in ("agent_info", "user_info"):
        facts |= {f"{key.removesuffix('_info')}_llm": mapping_at(info, key).get("llm")}
    told = {key: value for key, value in facts.items() if value is not None}
    return fit(tidy(told, planned.notes), MAX_METADATA_BYTES, planned.notes) or None


def _tags(run: Mapping[str, Any], planned: Planned, own: tuple[str, ...]) -> list[str]:
    told = [("task", run.get("task_id")), ("trial", run.get("trial"))]
    made = [label(f"{name}:{it}", planned.notes, MAX_TAG) for name, it in told if it is not None]
    return list(dict.fromkeys([*own, *made]))


def _domain(info: Mapping[str, Any], planned: Planned) -> str | None:
    name = mapping_at(info, "environment_info").get("domain_name")
    return label(name, planned.notes) if isinstance(name, str) and name else None


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)
