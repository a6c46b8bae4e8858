"""Results of Terminal-Bench, `results.json`: a run's trials, each with its tests. What the agent
did in its terminal is in other files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mneme.importing.blocks import count_of, message_event
from mneme.importing.messages import parse_time, tool_answer
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

_AGENT = "terminal-bench"
_NO_FAILURE = ("none", "unset", "")
_FACTS = ("task_id", "trial_name", "failure_mode", "recording_path")


class TerminalBench(Reader):
    """Reads a run's results."""

    name = "terminal-bench"
    title = "results of Terminal-Bench"

    @classmethod
    def detects(cls, value: Any) -> int:
        """Its trials name a task, and say whether it is resolved."""
        results = value.get("results") if isinstance(value, Mapping) else None
        first = results[0] if isinstance(results, list) and results else None
        ours = isinstance(first, Mapping) and {"task_id", "is_resolved"} <= first.keys()
        return 85 if ours else 0

    def read(self, record: Record) -> Iterator[Planned | Broken]:
        """Plan each trial as one session."""
        value = record.value
        if not isinstance(value, Mapping) or not isinstance(value.get("results"), list):
            raise UnusableError("holds no results")
        for trial in value["results"]:
            yield from attempted(record.place, self._trial(record, trial, value))

    def _trial(self, record: Record, trial: Any, run: Mapping[str, Any]) -> Iterator[Planned]:
        if not isinstance(trial, Mapping) or not trial.get("task_id"):
            raise UnusableError("a trial without a task")
        planned = Planned(record.place)
        own = trial.get("id") or digest([run.get("id"), trial.get("trial_name"), trial["task_id"]])
        session_id = identifier(f"{_AGENT}-{own}")
        for number, event in enumerate(_events(trial, planned)):
            planned.add(session_id, f"{session_id}:{number}", event)
        task = label(f"task:{trial['task_id']}", planned.notes, MAX_TAG)
        facts = {key: trial[key] for key in _FACTS if trial.get(key)}
        if isinstance(trial.get("is_resolved"), bool):
            facts["success"] = trial["is_resolved"]
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or _agent(run, planned),
            "user_id": self.defaults.user_id,
            "project": self.defaults.project,
            "tags": list(dict.fromkeys([*self.defaults.tags, task])),
            "metadata": fit(tidy(facts, planned.notes), MAX_METADATA_BYTES, planned.notes) or None,
            "started_at": parse_time(trial.get("trial_started_at")),
        }
        planned.end = {
            "session_id": session_id,
            "status": "completed" if _failure(trial) in _NO_FAILURE else "error",
            "ended_at": parse_time(trial.get("trial_ended_at")),
        }
        yield planned


def _events(trial: Mapping[str, Any], planned: Planned) -> Iterator[dict[str, Any]]:
    instruction = trial.get("instruction")
    if isinstance(instruction, str) and instruction:
        yield message_event("user", instruction, planned)
    tokens = {
        "input_tokens": count_of(trial, "total_input_tokens"),
        "output_tokens": count_of(trial, "total_output_tokens"),
    }
    if any(tokens.values()):
        yield {"event_type": "llm_response", **tokens}
    for test, status in mapping_at(trial, "parser_results").items():
        name = label(test, planned.notes)
        error = None if status == "passed" else f"the test {status}"
        yield tool_answer(name, "", str(status), error, notes=planned.notes)
    failure = _failure(trial)
    if failure not in _NO_FAILURE:
        words = clip(clean(failure, planned.notes), planned.notes)
        yield {"event_type": "error", "name": "trial", "error": words}


def _failure(trial: Mapping[str, Any]) -> str:
    return str(trial.get("failure_mode") or "")


def _agent(run: Mapping[str, Any], planned: Planned) -> str:
    found = mapping_at(run, "metadata").get("agent_name") or run.get("agent_name")
    return label(found, planned.notes) if isinstance(found, str) and found else _AGENT
