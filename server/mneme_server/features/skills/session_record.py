"""The record of a session, and what it says of the attempt that it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.context.notes import SessionNotes, event_pages
from mneme_server.features.context.words import telling
from mneme_server.features.events.event_types import EventPart, role_of, traits_of
from mneme_server.features.events.history import EventDigest, active_us
from mneme_server.features.events.model import REWARDS, Outcome, Session
from mneme_server.features.events.outcomes import REWARD_OF_SUCCESS
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.skills.model import Episode, NewEpisode, within_bounds

MAX_TOOLS = 1_000
"""Calls of a session that are kept, its first ones."""
_MAX_TASK = 8_192
_MAX_TEXT = 65_536


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What a session's record says; empty or None where it says nothing.

    `ended_us` is when it ended, or was last active.
    """

    agent_id: str
    user_id: str
    project: str
    tags: tuple[str, ...]
    task: str
    input: str
    output: str
    reward: float | None
    success: bool | None
    latency_ms: int | None
    tokens_used: int | None
    tools: tuple[str, ...]
    ended_us: int


def read_record(tenant: OpenTenant, session_id: str) -> SessionRecord | None:
    """Return what is recorded of a session; None when there is no such session."""
    with tenant.read() as unit:
        session = unit.get(SqlSessions).get(session_id)
    if session is None:
        return None
    notes, said = SessionNotes(), _SessionText()
    for page in event_pages(tenant, session_id):
        notes.add(page)
        said.add(page)
    return _record(session, notes, said)


class _SessionText:
    """The calls of a session, and what its user said first and its agent last, word for word."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self.first = self.last = ""

    def add(self, events: Sequence[EventDigest]) -> None:
        """Read some more events, in their order."""
        for event in events:
            part = traits_of(event.event_type).part
            if part is EventPart.CALL and event.name and len(self.tools) < MAX_TOOLS:
                self.tools.append(event.name)
            elif part in (EventPart.TALK, EventPart.REPLY) and event.text:
                payload = json.loads(event.payload_json) if event.payload_json else {}
                role = role_of(event.event_type, payload, event.text)
                if role == "user":
                    self.first = self.first or event.text
                elif role == "assistant" and (not self.last or telling(event.text)):
                    self.last = event.text  # Not a goodbye, if there is anything better.


def _record(session: Session, notes: SessionNotes, said: _SessionText) -> SessionRecord:
    metadata = json.loads(session.metadata_json)
    tokens = session.total_input_tokens + session.total_output_tokens
    return SessionRecord(
        agent_id=session.agent_id,
        user_id=session.user_id,
        project=session.project,
        tags=session.tags,
        task=(_named_task(metadata) or notes.need)[:_MAX_TASK],
        input=said.first[:_MAX_TEXT],
        output=(said.last or notes.end)[:_MAX_TEXT],
        reward=_reward(session),
        success=None if session.outcome == Outcome.UNKNOWN else session.outcome == Outcome.SUCCESS,
        latency_ms=_latency_ms(notes),
        tokens_used=tokens or None,
        tools=tuple(said.tools),
        ended_us=active_us(session),
    )


def _reward(session: Session) -> float | None:
    return None if session.worth is None else within_bounds(session.worth)


def _named_task(metadata: dict[str, Any]) -> str:
    task = metadata.get("task")
    return task.strip() if isinstance(task, str) else ""


def _latency_ms(notes: SessionNotes) -> int | None:
    """Return the time from the first event to the last; None where times tell nothing."""
    if notes.first_us is None or notes.last_us is None or notes.last_us <= notes.first_us:
        return None
    return (notes.last_us - notes.first_us) // 1_000


_FILLED: dict[str, Callable[[Any], bool]] = {
    "agent_id": bool, "user_id": bool, "project": bool, "tags": bool, "task": bool, "input": bool,
    "output": bool, "tools": bool,
    "latency_ms": lambda value: value is not None,
    "tokens_used": lambda value: value is not None,
}  # fmt: skip
"""What a record fills in where it was left out, and how one tells that it was given."""


def completed(given: NewEpisode, record: SessionRecord | None, now_us: int) -> Episode:
    """Return the episode: what was given, the rest from the session's record, if there is one.

    Raises:
        InvalidArgument: MISSING_REQUIRED_FIELD, neither says the task, or how it ended.
    """
    filled: dict[str, Any] = {}
    if record is not None:
        for name, is_there in _FILLED.items():
            said = getattr(record, name)
            if is_there(said) and not is_there(getattr(given, name)):
                filled[name] = said
        if given.reward is None and given.success is None and record.success is not None:
            filled |= {"reward": record.reward, "success": record.success}
        if given.occurred_us is None:
            filled["occurred_us"] = record.ended_us
    whole = replace(given, **filled)
    _require(whole.task, "task", "task is required: what was to be done", given, record)
    reward, success = whole.reward, whole.success
    ended = reward is not None or success is not None
    _require(ended, "success", "how it ended is required, as success or reward", given, record)
    if reward is None:
        reward = REWARDS[Outcome.SUCCESS if success else Outcome.FAILURE]
    if success is None:
        success = reward >= REWARD_OF_SUCCESS
    return Episode(
        id=whole.id,
        task=whole.task,
        reward=reward,
        success=success,
        session_id=whole.session_id,
        agent_id=whole.agent_id,
        user_id=whole.user_id,
        project=whole.project,
        input=whole.input,
        output=whole.output,
        critique=whole.critique,
        latency_ms=whole.latency_ms,
        tokens_used=whole.tokens_used,
        tools=whole.tools,
        tags=tuple(sorted(set(whole.tags))),
        metadata_json=whole.metadata_json,
        occurred_us=now_us if whole.occurred_us is None else whole.occurred_us,
        memory_ids=whole.memory_ids,
        created_us=now_us,
        filled=tuple(sorted(_SHOWN_AS.get(name, name) for name in filled)),
    )


_SHOWN_AS = {"occurred_us": "occurred_at"}


def _require(
    said: object, field: str, problem: str, given: NewEpisode, record: SessionRecord | None
) -> None:
    if said:
        return
    if not given.session_id:
        why = ""
    elif record is None:
        why = f", and no session {given.session_id!r} is recorded here that could say it"
    elif field == "success":
        why = f", and nobody said how the session {given.session_id!r} turned out"
    else:
        why = f", and the record of the session {given.session_id!r} does not say it"
    raise InvalidArgument(f"{problem}{why}", reason=Reason.MISSING_REQUIRED_FIELD, field=field)
