"""Chat transcripts: a list of messages, or a record that holds one, as a planned session."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from mneme.importing.messages import events_of
from mneme.importing.outcomes import run_failed, verdict_of
from mneme.importing.plan import (
    MAX_METADATA_BYTES,
    MAX_TAG,
    MAX_TAGS,
    Defaults,
    Planned,
    UnusableError,
    digest,
    fit,
    label,
    mapping_at,
    tidy,
)
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record, is_conversation
from mneme.importing.roles import role_in

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
_PROMPTS = ("system", "developer")
_DIGEST_LENGTH = 20
_ID_ROOM = 120

# Turns a message into its events' fields, given the names of the tools called so far.
Translate = Callable[[Any, dict[str, str], Planned], Iterator[dict[str, Any]]]


class Chat(Reader):
    """Reads conversations in OpenAI's form."""

    name = "openai"
    title = "chat transcripts (a list of messages, or a record with one under `messages` and such)"

    @classmethod
    def detects(cls, value: Any) -> int:
        """A list of messages is one, wherever it stands."""
        return 30 if messages_of(value) is not None else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one record as one session."""
        yield plan_transcript(record, self.defaults)


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

    The session's id is made of the record's own id and, where that may not be its alone (a task's
    number) or is missing, of the conversation's opening; an event's id of the session's id and
    the event's place in it. So the same record always makes the same session, wherever it stands,
    and one that grew adds what is new. A session ends with status ERROR when the record judges
    its run a failure (see `run_failed`), else COMPLETED; how it turned out, only its verdict says.

    Raises:
        UnusableError: it holds no messages.
    """
    return plan_conversation(record, defaults, messages_of, _translate)


def plan_conversation(
    record: Record,
    defaults: Defaults,
    find: Callable[[Any], list[Any] | None],
    translate: Translate,
    width: int | None = None,
) -> Planned:
    """Plan a session whose messages `find` finds and `translate` turns into events.

    Args:
        record: the record.
        defaults: what the caller says of everything.
        find: the messages in a record's value.
        translate: the events of a message; a field `key` takes the place of its number in its id.
        width: how many messages are part of the session's id; None: as few as may do.

    Raises:
        UnusableError: it holds no messages.
    """
    messages, unmasked = find(record.value), find(record.unmasked)
    if messages is None or unmasked is None:
        raise UnusableError("holds no list of messages")
    facts = record.value if isinstance(record.value, Mapping) else {}
    if width is None:
        width = _opening(facts, unmasked)
    planned = Planned(record.place)
    session_id = _session_id(facts, unmasked[:width])
    _add_events(planned, session_id, messages, translate, record.gaps)
    if not planned.events:
        raise UnusableError("its messages hold neither text nor tool calls")
    if width < len(unmasked):
        wider = min(len(unmasked), max(2 * width, width + 1))
        planned.wider = lambda: plan_conversation(record, defaults, find, translate, wider)
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


def _translate(
    message: Any, call_names: dict[str, str], planned: Planned
) -> Iterator[dict[str, Any]]:
    return events_of(message, call_names, planned.notes, planned.kept)


def _add_events(
    planned: Planned,
    session_id: str,
    messages: list[Any],
    translate: Translate,
    gaps: Collection[int],
) -> None:
    """Add the messages' events. One that could not be read keeps a place, as most have one event:
    once its file is mended it is added there, and those after it are where they were."""
    call_names: dict[str, str] = {}
    missing = Counter(gaps)
    index = 0
    for number, message in enumerate(messages):
        index += missing[number]
        for fields in translate(message, call_names, planned):
            key = fields.pop("key", None)
            planned.add(session_id, f"{session_id}:{index if key is None else key}", fields)
            index += key is None


def _opening(facts: Mapping[str, Any], messages: list[Any]) -> int:
    """How many messages tell a conversation from others, beside the record's own id."""
    if "task_id" not in facts and any(isinstance(facts.get(key), str) for key in _ID_KEYS):
        return 0
    for number, message in enumerate(messages, start=1):
        if role_in(message) not in _PROMPTS:
            return number
    return len(messages)


def _session_id(facts: Mapping[str, Any], opening: list[Any]) -> str:
    """An id that tells people where it is from."""
    own = [(key, facts[key]) for key in _ID_KEYS if isinstance(facts.get(key), str | int)]
    if "task_id" in facts:
        keys = [key for key in ("task_id", "trial") if key in facts]
        parts = [f"{_TAGGED[key]}-{facts[key]}" for key in keys]
        own += [(key, facts[key]) for key in keys]
    else:
        parts = [str(own[0][1]) if own else "chat"]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-")[:_ID_ROOM] or "chat"
    return f"{name}-{digest([own, opening])[:_DIGEST_LENGTH]}"


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
    info, task = mapping_at(facts, "info"), mapping_at(mapping_at(facts, "info"), "task")
    kept |= {key: info[key] for key in ("source", "user_cost", "error") if info.get(key)}
    kept |= {key: task[key] for key in ("instruction", "user_id") if task.get(key)}
    tidied: dict[str, Any] = tidy(
        {**mapping_at(facts, "metadata"), **verdict_of(facts), **kept}, notes
    )
    return tidied


def _user(facts: Mapping[str, Any], notes: Counter[str]) -> str | None:
    task = mapping_at(mapping_at(facts, "info"), "task")
    return _first(facts, notes, "user_id", "user") or _first(task, notes, "user_id")


def _first(facts: Mapping[str, Any], notes: Counter[str], *keys: str) -> str | None:
    for key in keys:
        value = facts.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return label(value, notes)
    return None
