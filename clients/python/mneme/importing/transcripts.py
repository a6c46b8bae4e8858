"""Chat transcripts: a list of messages, or a record that holds one, as a planned session."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mneme._core.convert import fill
from mneme.importing.messages import events_of
from mneme.importing.outcomes import run_failed
from mneme.importing.plan import (
    MAX_METADATA_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_TAG,
    MAX_TAGS,
    Defaults,
    Planned,
    UnusableError,
    digest,
    fit,
    label,
    tidy,
)
from mneme.importing.reading import Record, is_conversation
from mneme.messages import NewEvent

# Where records keep their messages.
_MESSAGE_KEYS = (
    "messages",
    "traj",
    "trajectory",
    "conversation",
    "conversations",
    "transcript",
    "history",
    "turns",
)
_TAGGED = {"task_id": "task", "trial": "trial", "reward": "reward"}
_ID_KEYS = ("session_id", "conversation_id", "id", "run_id")
_DIGEST_LENGTH = 20
_ID_ROOM = 120


def messages_of(value: Any) -> list[Any] | None:
    """The messages of a record, or of a bare list of them; None when it is no transcript."""
    if is_conversation(value):
        return list(value)
    if isinstance(value, Mapping):
        for key in _MESSAGE_KEYS:
            found = value.get(key)
            if isinstance(found, list) and found and isinstance(found[0], Mapping):
                return found
    return None


def plan_transcript(record: Record, defaults: Defaults) -> Planned:
    """Plan the session of a transcript.

    The session's id is made of the record's content, and an event's id of the session's id and
    the event's place in it, so that the same record always makes the same session, wherever it
    stands, and importing it again changes nothing. A session ends with status ERROR when the
    record judges its run a failure (see `run_failed`), else COMPLETED.

    Raises:
        UnusableError: a message cannot be understood.
    """
    messages = messages_of(record.value)
    if messages is None:
        raise UnusableError("holds no list of messages")
    facts = record.value if isinstance(record.value, Mapping) else {}
    planned = Planned(record.place)
    session_id = _session_id(facts, record.value)
    planned.events = list(_events(messages, session_id, planned.notes))
    if not planned.events:
        raise UnusableError("its messages hold neither text nor tool calls")
    times = [event.timestamp for event in planned.events if event.HasField("timestamp")]
    planned.start = _start(facts, session_id, defaults, planned.notes)
    planned.end = {
        "session_id": session_id,
        "status": "error" if run_failed(facts) else "completed",
    }
    if times:
        planned.start["started_at"] = min(times, key=lambda t: (t.seconds, t.nanos))
        planned.end["ended_at"] = max(times, key=lambda t: (t.seconds, t.nanos))
    return planned


def _events(messages: list[Any], session_id: str, notes: Counter[str]) -> Iterator[NewEvent]:
    call_names: dict[str, str] = {}
    index = 0
    for number, message in enumerate(messages, start=1):
        try:
            found = list(events_of(message, call_names, notes))
        except UnusableError as error:
            raise UnusableError(f"message {number}: {error}") from error
        for fields in found:
            payload = fit(fields.pop("payload"), MAX_PAYLOAD_BYTES, notes) or None
            event = NewEvent()
            ids = {"id": f"{session_id}:{index}", "session_id": session_id}
            fill(event, {**fields, **ids, "payload": payload})
            yield event
            index += 1


def _session_id(facts: Mapping[str, Any], value: Any) -> str:
    """An id that tells people where it is from, and no two records apart share."""
    if "task_id" in facts:
        parts = [f"task-{facts['task_id']}"]
        if "trial" in facts:
            parts.append(f"trial-{facts['trial']}")
    else:
        own = (facts[key] for key in _ID_KEYS if isinstance(facts.get(key), str | int))
        parts = [str(next(own, "chat"))]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-")[:_ID_ROOM] or "chat"
    return f"{name}-{digest(value)[:_DIGEST_LENGTH]}"


def _start(
    facts: Mapping[str, Any], session_id: str, defaults: Defaults, notes: Counter[str]
) -> dict[str, Any]:
    tags = [*defaults.tags]
    for key, name in _TAGGED.items():
        value = facts.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            tags.append(label(f"{name}:{shown}", notes, MAX_TAG))
    own_tags = facts.get("tags")
    if isinstance(own_tags, list):
        tags += [label(tag, notes, MAX_TAG) for tag in own_tags if isinstance(tag, str) and tag]
    return {
        "session_id": session_id,
        "agent_id": defaults.agent_id or _first(facts, notes, "agent_id", "agent"),
        "agent_name": _first(facts, notes, "agent_name"),
        "user_id": defaults.user_id or _user(facts, notes),
        "project": defaults.project or _first(facts, notes, "project"),
        "tags": list(dict.fromkeys(tags))[:MAX_TAGS],
        "metadata": fit(_metadata(facts, notes), MAX_METADATA_BYTES, notes) or None,
    }


def _metadata(facts: Mapping[str, Any], notes: Counter[str]) -> dict[str, Any]:
    """What the record says beside its messages: task, trial, reward, what the user wanted."""
    kept = {
        key: value
        for key, value in facts.items()
        if isinstance(value, str | int | float | bool) and key not in ("agent_name", "project")
    }
    info, task = _mapping(facts, "info"), _mapping(_mapping(facts, "info"), "task")
    kept |= {key: info[key] for key in ("source", "user_cost", "error") if info.get(key)}
    kept |= {key: task[key] for key in ("instruction", "user_id") if task.get(key)}
    tidied: dict[str, Any] = tidy({**_mapping(facts, "metadata"), **kept}, notes)
    return tidied


def _user(facts: Mapping[str, Any], notes: Counter[str]) -> str | None:
    task = _mapping(_mapping(facts, "info"), "task")
    return _first(facts, notes, "user_id", "user") or _first(task, notes, "user_id")


def _first(facts: Mapping[str, Any], notes: Counter[str], *keys: str) -> str | None:
    for key in keys:
        value = facts.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return label(value, notes)
    return None


def _mapping(facts: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = facts.get(key)
    return value if isinstance(value, Mapping) else {}
