"""Logs of Inspect as JSON (`inspect log convert --to json`): one evaluation with its samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import count_of, thought
from mneme.importing.messages import events_of, parse_time, raw
from mneme.importing.plan import (
    MAX_METADATA_BYTES,
    MAX_TAG,
    Planned,
    UnusableError,
    clean,
    clip,
    digest,
    fit,
    identifier,
    label,
    mapping_at,
    tidy,
)
from mneme.importing.readers.base import Reader, attempted
from mneme.importing.reading import Broken, Record

_LETTERS: Mapping[str, dict[str, Any]] = {
    "C": {"reward": 1}, "I": {"reward": 0}, "P": {"outcome": "partial"},
}  # fmt: skip
"""What a scorer means by a letter: correct, incorrect, partly correct; N is no answer."""


class InspectAi(Reader):
    """Reads a log."""

    name = "inspect-ai"
    title = "logs of Inspect, as JSON"

    @classmethod
    def detects(cls, value: Any) -> int:
        """It holds samples of an evaluation that names its task."""
        if not isinstance(value, Mapping) or not isinstance(value.get("samples"), list):
            return 0
        return 85 if "task" in mapping_at(value, "eval") else 0

    def read(self, record: Record) -> Iterator[Planned | Broken]:
        """Plan each sample as one session."""
        value = record.value
        if not isinstance(value, Mapping) or not isinstance(value.get("samples"), list):
            raise UnusableError("holds no samples")
        for sample in value["samples"]:
            yield from attempted(record.place, self._sample(record, sample, value))

    def _sample(self, record: Record, sample: Any, log: Mapping[str, Any]) -> Iterator[Planned]:
        if not isinstance(sample, Mapping) or "id" not in sample:
            raise UnusableError("a sample without an id")
        planned, said = Planned(record.place), mapping_at(log, "eval")
        own = sample.get("uuid") or digest([said.get("run_id"), sample["id"], sample.get("epoch")])
        session_id = identifier(f"inspect-{own}")
        for key, event in _events(sample, planned):
            planned.add(session_id, f"{session_id}:{key}", event)
        named = (("task", sample["id"]), ("trial", sample.get("epoch")))
        tags = [label(f"{name}:{it}", planned.notes, MAX_TAG) for name, it in named if it]
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or label(said.get("model") or "", planned.notes),
            "user_id": self.defaults.user_id,
            "project": self.defaults.project or label(said["task"], planned.notes),
            "tags": list(dict.fromkeys([*self.defaults.tags, *tags])),
            "metadata": _metadata(sample, said, planned),
            "started_at": parse_time(sample.get("started_at")),
        }
        planned.end = {
            "session_id": session_id,
            "status": "error" if sample.get("error") else "completed",
            "ended_at": parse_time(sample.get("completed_at")),
        }
        yield planned


def _events(sample: Mapping[str, Any], planned: Planned) -> Iterator[tuple[str, dict[str, Any]]]:
    names: dict[str, str] = {}
    for number, message in enumerate(sample.get("messages") or []):
        for place, event in enumerate(_of_message(message, names, planned)):
            yield f"{number}:{place}", event
    for number, (model, usage) in enumerate(mapping_at(sample, "model_usage").items()):
        if isinstance(usage, Mapping):
            yield f"usage:{number}", _usage(model, usage, planned)
    failed = mapping_at(sample, "error").get("message")
    if isinstance(failed, str) and failed:
        words = clip(clean(failed, planned.notes), planned.notes)
        yield "error", {"event_type": "error", "name": "sample", "error": words}


def _of_message(message: Any, names: dict[str, str], planned: Planned) -> Iterator[dict[str, Any]]:
    if not isinstance(message, Mapping):
        yield raw("message", message, "message that is no object", planned.notes, planned.kept)
        return
    said = {key: value for key, value in message.items() if key not in ("id", "error", "function")}
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if isinstance(part, Mapping) and part.get("type") == "reasoning":
                more = {key: part[key] for key in ("signature", "redacted") if part.get(key)}
                yield thought(str(part.get("reasoning") or ""), planned, more)
        said["content"] = [one for one in content if _type(one) != "reasoning"]
    calls = [one for one in message.get("tool_calls") or [] if isinstance(one, Mapping)]
    said["tool_calls"] = [
        {"id": one.get("id"), "function": {"name": one.get("function"), **_arguments(one)}}
        for one in calls
    ]
    if message.get("role") == "tool":
        said["name"] = message.get("function")
        failed = mapping_at(message, "error").get("message")
        if failed:
            said |= {"is_error": True, "content": failed}
    yield from events_of(said, names, planned.notes, planned.kept)


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"arguments": call["arguments"]} if call.get("arguments") is not None else {}


def _type(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _usage(model: str, usage: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
    """What all calls of a model used together: a log without its transcript says no more."""
    cost = usage.get("total_cost")
    return {
        "event_type": "llm_response",
        "model": label(model, planned.notes),
        "input_tokens": count_of(usage, "input_tokens"),
        "output_tokens": count_of(usage, "output_tokens"),
        "cost_usd": float(cost) if isinstance(cost, int | float) else None,
        "payload": {"usage": tidy(dict(usage), planned.notes)},
    }


def _metadata(
    sample: Mapping[str, Any], said: Mapping[str, Any], planned: Planned
) -> dict[str, Any] | None:
    scores = mapping_at(sample, "scores")
    facts: dict[str, Any] = {
        "task_id": sample["id"],
        "trial": sample.get("epoch"),
        "model": said.get("model"),
        "limit": mapping_at(sample, "limit").get("type"),
        "scores": {name: mapping_at(scores, name).get("value") for name in scores} or None,
    }
    facts |= _verdict(next((mapping_at(scores, name).get("value") for name in scores), None))
    told = {key: value for key, value in facts.items() if value is not None}
    return fit(tidy(told, planned.notes), MAX_METADATA_BYTES, planned.notes) or None


def _verdict(value: Any) -> dict[str, Any]:
    """What the first score says of how it turned out: a letter, or a share. Other numbers have
    scales of their own."""
    if isinstance(value, str):
        return _LETTERS.get(value, {})
    if isinstance(value, int | float) and 0 <= value <= 1:
        return {"reward": value + 0}
    return {}
