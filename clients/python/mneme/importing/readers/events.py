"""Mneme's own events, sessions and grades in protobuf's JSON form, one a line.

`mneme events list --json`, `mneme events watch --json`, `mneme sessions list --json` and `mneme
sessions grades --json` write what is read here. What only a server can say (sequence, hashes,
counters) is left out. The status of a session says how it turned out only where `outcome_by` names
the agent: a status alone says that it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mneme.errors import ArgumentError
from mneme.importing.plan import Defaults, Planned, UnusableError, digest, tidy
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Record
from mneme.importing.source import Source
from mneme.messages import (
    Event,
    Grade,
    GradeSource,
    NewEvent,
    NewGrade,
    Session,
    SessionStatus,
)
from mneme.plain import from_dict

_ENUM = "EVENT_TYPE_"
"""What types began with while they were an enum."""
_EVENT_KEYS = ("event_type", "eventType")
_SESSION_KEYS = ("started_at", "startedAt", "status", "head_hash", "headHash")
_GRADE_KEYS = ("outcome", "reward")
_ENDED = (SessionStatus.SESSION_STATUS_COMPLETED, SessionStatus.SESSION_STATUS_ERROR)


_GRADED = (GradeSource.GRADE_SOURCE_GRADER, GradeSource.GRADE_SOURCE_PERSON)


def is_native(value: Any) -> bool:
    """Whether a record is one of Mneme's events or sessions."""
    kind, _ = _unwrapped(value)
    return kind != ""


class Events(Reader):
    """Reads what Mneme wrote."""

    name = "events"
    title = "Mneme's own events and sessions"

    def __init__(self, source: Source, defaults: Defaults) -> None:
        super().__init__(source, defaults)
        self._native = NativeReader(defaults)

    @classmethod
    def detects(cls, value: Any) -> int:
        """An event has a type, a session an id and times."""
        return 50 if is_native(value) else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan one line."""
        planned = self._native.plan(record)
        if planned is not None:
            yield planned


class NativeReader:
    """Plans events and sessions, and makes the ids that events lack.

    Such an id is made of the event's content and of how often the same content came before it, so
    that reading the same file again makes the same ids.

    Args:
        defaults: what the caller says of everything.
    """

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._seen: Counter[str] = Counter()

    def plan(self, record: Record) -> Planned | None:
        """Plan one line; None for a cursor without an event, which `events watch` may write.

        Raises:
            UnusableError: the line is neither an event nor a session.
        """
        kind, value = _unwrapped(record.value)
        if kind == "cursor":
            return None
        if kind == "event":
            planned = Planned(record.place)
            planned.events.append(self._event(value, planned.notes))
            return planned
        if kind == "grade":
            planned = Planned(record.place)
            planned.grades.append(_grade(value, planned.notes))
            return planned
        if kind == "session":
            return self._session(record, value)
        raise UnusableError("neither an event (event_type) nor a session nor a grade")

    def _event(self, value: Mapping[str, Any], notes: Counter[str]) -> NewEvent:
        # An Event has every field of a NewEvent, so both are read as one.
        event = Event()
        _parse(value, event, notes)
        new = NewEvent()
        for field, content in event.ListFields():
            if field.name not in NewEvent.DESCRIPTOR.fields_by_name:
                continue
            if field.message_type:
                getattr(new, field.name).CopyFrom(content)
            else:
                setattr(new, field.name, content)
        if "searchable" in value:
            new.searchable = event.searchable
        if new.event_type.startswith(_ENUM):
            new.event_type = new.event_type.removeprefix(_ENUM).lower()
        if not new.session_id:
            raise UnusableError("session_id: an event belongs to a session")
        if not new.id:
            content_hash = digest(value)[:20]
            new.id = f"{new.session_id[:160]}:{content_hash}-{self._seen[content_hash]}"
            self._seen[content_hash] += 1
        if self._defaults.agent_id and not new.agent_id:
            new.agent_id = self._defaults.agent_id
        return new

    def _session(self, record: Record, value: Mapping[str, Any]) -> Planned:
        session = Session()
        planned = Planned(record.place)
        _parse(value, session, planned.notes)
        if not session.id:
            raise UnusableError("id: a session needs one")
        planned.start = {
            "session_id": session.id,
            "agent_id": self._defaults.agent_id or session.agent_id,
            "agent_name": session.agent_name,
            "user_id": self._defaults.user_id or session.user_id,
            "project": self._defaults.project or session.project,
            "tags": list(dict.fromkeys([*session.tags, *self._defaults.tags])),
            "metadata": session.metadata if session.metadata.fields else None,
            "started_at": session.started_at if session.HasField("started_at") else None,
        }
        if session.outcome_by in _GRADED:
            planned.grades.append(_grade_of(session))
        if session.status in _ENDED:
            planned.end = {
                "session_id": session.id,
                "status": session.status,
                "observed": session.outcome_by != GradeSource.GRADE_SOURCE_AGENT,
                "ended_at": session.ended_at if session.HasField("ended_at") else None,
            }
        return planned


def _grade(value: Mapping[str, Any], notes: Counter[str]) -> NewGrade:
    # A Grade has every field of a NewGrade, so both are read as one.
    grade = Grade()
    _parse(value, grade, notes)
    grade.ClearField("recorded_at")
    if not grade.id:
        grade.id = f"{grade.session_id[:160]}:{digest(value)[:20]}"
    if grade.source not in _GRADED:
        grade.source = GradeSource.GRADE_SOURCE_GRADER
    return NewGrade.FromString(grade.SerializeToString())


def _grade_of(session: Session) -> NewGrade:
    """The grade that a session tells of."""
    grade = NewGrade(
        session_id=session.id,
        outcome=session.outcome,
        source=session.outcome_by,
        reward=session.reward if session.HasField("reward") else None,
    )
    said = grade.SerializeToString(deterministic=True).hex()
    grade.id = f"{session.id[:160]}:{digest(said)[:20]}"
    return grade


def _unwrapped(value: Any) -> tuple[str, Mapping[str, Any]]:
    """What a line is, and the event or session in it; "" when it is neither."""
    if not isinstance(value, Mapping):
        return "", {}
    for kind in ("event", "session", "grade"):
        if isinstance(value.get(kind), Mapping):
            return kind, value[kind]
    if any(key in value for key in _EVENT_KEYS):
        return "event", value
    if "id" in value and any(key in value for key in _SESSION_KEYS):
        return "session", value
    if "session_id" in value and any(key in value for key in _GRADE_KEYS):
        return "grade", value
    return ("cursor", value) if set(value) == {"cursor"} else ("", {})


def _parse(value: Mapping[str, Any], message: Event | Grade | Session, notes: Counter[str]) -> None:
    try:
        # What a number of JSON does not hold exactly is kept as text.
        from_dict(tidy(dict(value), notes), message)
    except ArgumentError as error:
        raise UnusableError(str(error)) from error
